"""Programs of command tasks that do harm: only their own results suffer, and nothing is left behind."""

from __future__ import annotations

import base64
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from codebatch_workers.runtime.command_programs import WRITTEN_BYTES_MAX
from tests.support.command_line import CommandLine, wait_until, write

SETTINGS = """
[tasks.check]
command = ["./check", "{files}"]
match = ["*.txt"]
records = RECORDS
env = {OUTSIDE = "DIRECTORY"}

[pipelines.ci]
tasks = ["check"]
"""
VERSION = 'if [ "$1" = --version ]; then echo 1.0; exit; fi\n'
REPORT = 'for file; do echo "$file:1:1: error: bad"; done\n'
JSON_LINES = '{format = "json-lines", items = "", path = "/path", line = "/line", message = "/message"}'
CONTENTS = """
import json, os, sys
if sys.argv[1:] == ["--version"]:
    print("1.0")
    sys.exit()
for path in sys.argv[1:] or [os.path.join(d, f)[2:] for d, _, files in os.walk(".") for f in files]:
    with open(path, encoding="utf-8") as file:
        print(json.dumps({"path": path, "line": 1, "message": file.read()}))
"""
NAMES = (
    b"-rf.txt", b"line\nbreak.txt", b"{file}.txt", b"\xff\xfe.txt", b"\\xff\\xfe.txt", b"a:1:b.txt", b" .txt",
    b"n" * 240 + b".txt", b"m" * 251 + b".txt", b"/".join([b"d" * 200] * 11) + b"/deep.txt",
)  # fmt: skip
CONFUSABLE_NAMES = (NAMES[3], *NAMES[7:])
"""Names that cannot be written as they are, because the result is the name of another file or directory."""


@pytest.fixture
def hostile(codebatch: CommandLine, tmp_path: Path) -> CommandLine:
    """A project with a program whose code is in `$OUTSIDE/code`, and the files a.txt to h.txt."""
    codebatch.directory = tmp_path / "project"
    for letter in "abcdefgh":
        write(codebatch.directory / "src" / f"{letter}.txt", f"{letter}\n")
    configure(codebatch, REPORT)
    return codebatch


def configure(codebatch: CommandLine, code: str, *settings: str, records: str = '"gcc"', shell: str = "") -> None:
    """Write the program, and its table with more settings."""
    program = codebatch.directory / "check"
    write(program, code if shell else f"#!/bin/sh\n{VERSION}{code}")
    if shell:
        program.write_text(f"#!{shell}\n{code}")
    program.chmod(0o755)
    table = SETTINGS.replace("RECORDS", records).replace("DIRECTORY", str(codebatch.directory.parent))
    write(codebatch.directory / "codebatch.toml", table.replace("records", "\n".join([*settings, "records"])))


def paths_with_findings(codebatch: CommandLine) -> list[str]:
    batch = codebatch("status", "--json").json["batch_id"]
    rows = codebatch.ends("query", "diagnostics", "--batch", batch, "--limit", "1000", "--json").records
    return [row["path"].removeprefix("src/") for row in rows]


def processes_marked(mark: str) -> list[psutil.Process]:
    """Return the live processes that have an argument."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if mark in (process.info["cmdline"] or ()) and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


def digest_of_tree(root: Path) -> str:
    """Return a digest of the paths, kinds and contents below a directory, without the store."""
    whole = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if ".codebatch" not in path.parts:
            whole.update(os.fsencode(path) + (path.read_bytes() if path.is_file() else b""))
    return whole.hexdigest()


def test_nothing_outside_the_scratch_is_changed_and_nothing_is_left(hostile: CommandLine, tmp_path: Path) -> None:
    """The program changes its inputs, replaces its directories by links to the project, and starts daemons."""
    project = hostile.directory
    mark = f"daemon-{tmp_path}"
    write(project / "lib" / "in-project.txt", "of the user\n")
    configure(
        hostile,
        f"""{REPORT}
pwd >> "$OUTSIDE/places"
for file; do echo junk > "$file"; rm -f "$file"; done
mkdir -p deep/er; touch deep/er/x; chmod 000 deep/er deep
(setsid sh -c 'sleep 600; :' {mark} > /dev/null 2>&1 &)
env -i setsid sh -c 'trap "" TERM HUP; sleep 600; :' {mark} > /dev/null 2>&1 &
rm -rf src; ln -s "$OUTSIDE/project/src" src
ulimit -f > "$OUTSIDE/limit"
""",
        'link = ["lib"]',
        "chunk = 3",
    )
    before = digest_of_tree(project)
    hostile("run", "--pipeline", "ci")
    assert paths_with_findings(hostile) == [f"{letter}.txt" for letter in "abcdefgh"]
    assert digest_of_tree(project) == before
    assert int((tmp_path / "limit").read_text()) in (WRITTEN_BYTES_MAX >> 9, WRITTEN_BYTES_MAX >> 10)
    places = (tmp_path / "places").read_text().split()
    assert len(places) == 3
    assert not [place for place in places if os.path.lexists(place) or os.path.lexists(os.path.dirname(place))]
    assert processes_marked(mark) == []


@pytest.mark.parametrize(
    ("code", "evidence"),
    [
        ("head -c 500000000 /dev/zero", "check: it printed more than 67,108,864 bytes"),
        ("trap '' TERM HUP INT; while :; do sleep 1; done", "check: it did not end within 0.5 seconds"),
        ("head -c 9000000 /dev/zero >&2; exit 3", "\0\ncheck: it ended with status 3"),
        ("kill -40 $$; sleep 9", "check: signal 40 ended it"),
        ("exec 3</dev/tty", "check: it ended with status 2"),
    ],
)
def test_reason_of_a_failed_call_is_reported(hostile: CommandLine, code: str, evidence: str) -> None:
    for letter in "cdefgh":
        (hostile.directory / "src" / f"{letter}.txt").unlink()
    limit = "seconds_max = 0.5" if "within" in evidence else "seconds_max = 600"
    configure(hostile, f'case "$*" in *b.txt*) {code};; esac\n{REPORT}', limit)
    hostile("run", "--pipeline", "ci", status=3)
    (row,) = [row for row in hostile("errors", "--json").records if "evidence" in row]
    assert (row["path"], row["evidence"][-len(evidence) :]) == ("src/b.txt", evidence)
    assert paths_with_findings(hostile) == ["a.txt"]


def test_only_the_file_that_needs_too_much_memory_fails(hostile: CommandLine) -> None:
    code = """
import sys, time
if sys.argv[1:] == ["--version"]:
    sys.exit(print("1.0"))
if "src/d.txt" in sys.argv:
    memory = bytearray(600 << 20)
    time.sleep(60)
for path in sys.argv[1:]:
    print(f"{path}:1:1: error: bad")
"""
    configure(hostile, code, shell=sys.executable)
    hostile("run", "--pipeline", "ci", "--memory-mb", "300", status=3)
    (row,) = [row for row in hostile("errors", "--json").records if "evidence" in row]
    assert (row["path"], row["reason"]) == ("src/d.txt", "memory")
    assert paths_with_findings(hostile) == [f"{letter}.txt" for letter in "abcefgh"]


@pytest.mark.parametrize("scope", ["file", "project"])
def test_files_with_any_names_are_checked_and_none_is_confused(hostile: CommandLine, scope: str) -> None:
    """Two names are equal after escaping, and links of the tree lead outside through other links."""
    root = os.fsencode(hostile.directory)
    for name in NAMES:
        os.makedirs(os.path.dirname(root + b"/src/" + name), exist_ok=True)
        Path(os.fsdecode(root + b"/src/" + name)).write_bytes(name.decode("utf-8", "backslashreplace").encode() + b"!")
    write(hostile.directory / "a/b/c/d/e/f/x.txt", "x")
    write(hostile.directory / "module.txt/x.txt", "x")
    write(hostile.directory / "deep.txt", "x")
    (hostile.directory / "a/b/c/d/e/f/up").symlink_to("../../../../..")
    (hostile.directory / "out").symlink_to("a/b/c/d/e/f/up/../../../..")
    guard = 'if os.path.lexists("out"): sys.exit(9)\n'
    lines = CONTENTS.replace("import json, os, sys\n", f"import json, os, sys\n{guard}")
    configure(hostile, lines, f'scope = "{scope}"', "class = []", records=JSON_LINES, shell=sys.executable)
    if scope == "project":
        settings = hostile.directory / "codebatch.toml"
        settings.write_text(settings.read_text().replace(', "{files}"', ""))
    hostile("run", "--pipeline", "ci")
    batch = hostile("status", "--json").json["batch_id"]
    rows = hostile("query", "diagnostics", "--batch", batch, "--limit", "1000", "--json").records
    found = {
        base64.b64decode(row["path_b64"]) if "path_b64" in row else row["path"].encode(): row["message"] for row in rows
    }
    checked = [name for name in NAMES if scope == "file" or name not in CONFUSABLE_NAMES]
    assert {path: message for path, message in found.items() if message.endswith("!")} == {
        b"src/" + name: name.decode("utf-8", "backslashreplace") + "!" for name in checked
    }
    assert len(found) == 8 + 3 + len(checked)
    assert found[b"deep.txt"] == "x"


def test_program_that_is_replaced_ends_the_run_with_tool_mismatch(hostile: CommandLine) -> None:
    configure(hostile, f'touch "$OUTSIDE/$$.begun"; sleep 0.3\n{REPORT}', "chunk = 1")
    process = hostile.start("run", "--pipeline", "ci", "--json")
    wait_until(lambda: any(hostile.directory.parent.glob("*.begun")), "the program runs")
    configure(hostile, REPORT, "chunk = 1")
    assert hostile.finish(process, status=2).error["code"] == "tool_mismatch"
    hostile("run", "--pipeline", "ci")
    assert len(paths_with_findings(hostile)) == 8


def _kill_coordinator(process: subprocess.Popen[bytes]) -> None:
    process.kill()


def _kill_workers_and_stop(process: subprocess.Popen[bytes]) -> None:
    for worker in psutil.Process(process.pid).children():
        worker.kill()
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)


def _interrupt_twice(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)
    process.send_signal(signal.SIGINT)


@pytest.mark.parametrize("end", [_interrupt_twice, _kill_coordinator, _kill_workers_and_stop])
def test_running_program_does_not_outlive_the_next_run(
    hostile: CommandLine, tmp_path: Path, end: Callable[[subprocess.Popen[bytes]], None]
) -> None:
    mark = f"sleeper-{tmp_path}"
    configure(
        hostile,
        f"""
[ -e "$OUTSIDE/is-harmless" ] && {{ {REPORT.strip()}; exit; }}
pwd >> "$OUTSIDE/places"
(setsid sh -c 'sleep 600; :' {mark} > /dev/null 2>&1 &)
sh -c 'sleep 600; :' {mark}
""",
    )
    for number in range(20):
        write(hostile.directory / "src" / f"x{number}.md", "not selected\n")
    settings = hostile.directory / "codebatch.toml"
    settings.write_text(f"{settings.read_text()}[shard]\nfiles_average = 4\nfiles_min = 2\nfiles_max = 8\n")
    process = hostile.start("run", "--pipeline", "ci", "-j", "4")
    wait_until(lambda: any(hostile.directory.glob(".codebatch/batches/*/outcomes/*")), "a unit without files is done")
    wait_until(lambda: len(processes_marked(mark)) >= 2, "the program runs")
    end(process)
    _, notes = process.communicate(timeout=60)
    assert b"checked no file" not in notes
    (tmp_path / "is-harmless").touch()
    hostile("run", "--pipeline", "ci")
    assert processes_marked(mark) == []
    assert [place for place in (tmp_path / "places").read_text().split() if os.path.lexists(place)] == []
    assert list(hostile.directory.glob(".codebatch/batches/*/scratch/*")) == []
    assert len(paths_with_findings(hostile)) == 8


def test_batch_that_was_planned_before_is_run_with_the_program(hostile: CommandLine) -> None:
    snapshot = hostile("snapshot", ".", "--json").json["snapshot_id"]
    batch = hostile("batch", "init", "--snapshot", snapshot, "--pipeline", "ci", "--json").json["batch_id"]
    hostile("run", "--batch", batch)
    assert len(paths_with_findings(hostile)) == 8


def test_configuration_of_an_analysed_tree_runs_nothing(hostile: CommandLine, tmp_path: Path) -> None:
    configure(hostile, 'touch "$OUTSIDE/canary"', 'version = ["sh", "-c", "touch $OUTSIDE/canary; echo 1"]')
    (tmp_path / "elsewhere").mkdir()
    hostile("run", hostile.directory, "--store", "other", cwd=tmp_path / "elsewhere")
    hostile("run", "--no-commands")
    assert not (tmp_path / "canary").exists()
