"""Tasks that call a program: a linter of a few lines of shell."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, write

LINTER = """#!/bin/sh
[ "$1" = --version ] && { echo "linter $(cat "$0.version")"; exit; }
echo "$*" >> "$CALLS"
for file in "$@"; do
  case $file in *crash*) kill -SEGV $$;; *bad*) echo "no $PWD/$file" >&2; exit 7;; esac
  grep -n todo "$file" | sed "s|^\\([0-9]*\\):.*|$file:\\1:1: note: in $PWD/$file: todo [T1]|"
done
echo "elsewhere.sh:1:1: error: x [T2]"
true
"""
SETTINGS = """
[tasks.linter]
command = ["./linter", "{files}"]
match = ["*.sh", "!old/"]
records = "gcc"
env = {CALLS = "CALLS_FILE"}

[pipelines.ci]
tasks = ["linter"]
description = "what blocks a merge"
"""


@pytest.fixture
def linted(codebatch: CommandLine, tmp_path: Path) -> CommandLine:
    """A project with a linter as a task, and with a file that names its calls."""
    root = codebatch.directory
    write(root / "linter", LINTER)
    (root / "linter").chmod(0o755)
    write(root / "linter.version", "1.0")
    write(root / "codebatch.toml", SETTINGS.replace("CALLS_FILE", str(tmp_path / "calls")))
    for name in ("a.sh", "b.sh", "-c.sh", "old/d.sh", "e.py"):
        write(root / name, f"true\n# todo {name}\n")
    write(root / "f.sh", "# todo  # codebatch: ignore\n")
    return codebatch


def calls(tmp_path: Path) -> list[str]:
    """Return the arguments of the calls since the last look."""
    path = tmp_path / "calls"
    lines = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return lines


def test_linter_runs_on_chunks_of_selected_files_and_its_findings_are_findings(
    linted: CommandLine, tmp_path: Path
) -> None:
    ran = linted("run", "--pipeline", "ci", "--json").json
    assert calls(tmp_path) == ["./-c.sh a.sh b.sh f.sh"]
    assert ran["findings_left_out"] == {"linter": 1}
    assert linted("query", "diagnostics").lines == [
        "-c.sh:2:1: info T1 in ./-c.sh: todo [linter]",
        "a.sh:2:1: info T1 in a.sh: todo [linter]",
        "b.sh:2:1: info T1 in b.sh: todo [linter]",
    ]
    write(linted.directory / "b.sh", "true\n")
    linted("run", "--pipeline", "ci")
    assert calls(tmp_path) == ["b.sh"]
    assert [row["path"] for row in linted("query", "diagnostics", "--json").records] == ["-c.sh", "a.sh"]
    assert linted("run", "--pipeline", "ci", "--json").json["action"] == "up to date"
    write(linted.directory / "linter.version", "1.1")
    preview = linted("run", "--pipeline", "ci", "--dry-run", "--json").json
    assert [(task["tools"]["linter"], task["cached"]) for task in preview["tasks"]] == [("1.1", 0)]
    assert calls(tmp_path) == []


def test_failed_call_fails_only_the_guilty_files(linted: CommandLine, tmp_path: Path) -> None:
    write(linted.directory / "crash.sh", "# todo\n")
    write(linted.directory / "bad.sh", "# todo\n")
    failed = linted("run", "--pipeline", "ci", status=3)
    assert re.search(r"error: 2 of \d+ results failed", failed.notes)
    assert len(calls(tmp_path)) == 1 + 6
    assert [(row["path"], row["reason"]) for row in linted("errors", "--json").records] == [
        ("bad.sh", "exception"),
        ("crash.sh", "exception"),
    ]
    assert linted("errors").text.count("linter: ") == 2
    evidence = [row["evidence"] for row in linted("errors", "--json").records]
    assert evidence == ["no bad.sh\nlinter: it ended with status 7", "linter: SIGSEGV ended it"]
    assert len(linted("query", "diagnostics", "--json", status=3).records) == 3


def test_settings_select_codes_and_severities(linted: CommandLine) -> None:
    settings = linted.directory / "codebatch.toml"
    tables = settings.read_text()
    settings.write_text(tables.replace("[pipelines", 'severities = {T1 = "error"}\n[pipelines'))
    linted("run", "--pipeline", "ci")
    assert {row["severity"] for row in linted("query", "diagnostics", "--json").records} == {"error"}
    settings.write_text(tables.replace("[pipelines", 'off = ["T*"]\n[pipelines'))
    linted("run", "--pipeline", "ci")
    assert linted("query", "diagnostics", "--json").records == []


def test_commands_are_left_out_on_request_and_in_other_trees(linted: CommandLine, tmp_path: Path) -> None:
    linted("run", "--no-commands")
    refused = linted("run", "--no-commands", "--pipeline", "ci", status=2)
    assert "error: no task of the pipeline 'ci' can run here" in refused.notes
    other = tmp_path / "other"
    write(other / "a.sh", "# todo\n")
    write(other / "codebatch.toml", (linted.directory / "codebatch.toml").read_text())
    assert "codebatch.toml is not in the root of the analysed project" in linted("run", other).notes
    assert calls(tmp_path) == []
    notes = linted("query", "diagnostics", "--tool", "linter", cwd=other, status=2).notes
    assert "no task reports findings of the tool 'linter'" in notes


def test_optional_program_may_be_missing_and_a_task_without_files_is_named(linted: CommandLine) -> None:
    settings = linted.directory / "codebatch.toml"
    tables = settings.read_text().replace('"*.sh", "!old/"', '"*.rb"')
    settings.write_text(tables)
    assert "linter checked no file: no file matches" in linted("run").notes
    (linted.directory / "linter").unlink()
    refused = linted("run", status=2).notes
    assert "the program './linter' of the task 'linter' is not an executable file in" in refused
    settings.write_text(tables.replace("records", "optional = true\nrecords"))
    assert "the task linter was left out: the program './linter' is not installed" in linted("run").notes


def test_batch_of_a_removed_command_is_not_continued(linted: CommandLine, tmp_path: Path) -> None:
    write(linted.directory / "crash.sh", "# todo\n")
    batch = linted("run", "--pipeline", "ci", "--json", status=3).json["batch_id"]
    calls(tmp_path)
    write(linted.directory / "codebatch.toml", "")
    refused = linted("resume", "--batch", batch, "--json", status=2).error
    assert (refused["code"], calls(tmp_path)) == ("tool_mismatch", [])
    write(linted.directory / "codebatch.toml", SETTINGS.replace("CALLS_FILE", str(tmp_path / "others")))
    assert linted("resume", "--batch", batch, "--json", status=2).error["code"] == "tool_mismatch"
    assert not (tmp_path / "others").exists()


def test_project_task_gets_the_whole_tree_once(linted: CommandLine, tmp_path: Path) -> None:
    write(linted.directory / "config.ini", "[x]\n")
    (linted.directory / "inside").symlink_to("a.sh")
    (linted.directory / "outside").symlink_to("/etc/passwd")
    write(
        linted.directory / "codebatch.toml",
        f"""
[tasks.tree]
command = ["sh", "-c", "find . -type f -o -type l | sort | tee -a {tmp_path}/calls | sed s/$/:1:1:\\\\ error:\\\\ x/"]
scope = "project"
match = ["*.sh"]
records = "gcc"
version = false
""",
    )
    linted("run")
    assert {"./config.ini", "./inside", "./old/d.sh", "./e.py"} <= set(calls(tmp_path))
    rows = linted("query", "diagnostics", "--tool", "tree", "--json").records
    assert [row["path"] for row in rows] == ["-c.sh", "a.sh", "b.sh", "old/d.sh"]
    assert "outside" not in str(rows)


def test_time_limit_of_a_call_starts_anew_with_each_call(codebatch: CommandLine) -> None:
    for name in "abcde":
        write(codebatch.directory / f"{name}.sh", "true\n")
    write(
        codebatch.directory / "codebatch.toml",
        """
file_seconds_max = 1.0
[tasks.slow]
command = ["sh", "-c", "sleep 1; echo $1:1:1: error: slow", "slow", "{file}"]
records = "gcc"
match = ["*.sh"]
version = false
seconds_max = 4
""",
    )
    codebatch("run", "-j", "1")
    assert len(codebatch("query", "diagnostics", "--tool", "slow").lines) == 5


@pytest.mark.parametrize("argument", ["{files}", "."])
def test_project_task_without_a_selected_file_calls_no_program(
    codebatch: CommandLine, tmp_path: Path, argument: str
) -> None:
    root = codebatch.directory
    write(root / "docs/a.md", "x\n")
    write(root / "a.py", "x = 1\n")
    write(root / "lint", 'echo "$*" >> "$CALLS"\necho a.py:1:1: error: bad\necho docs/a.md:1:1: error: bad\n')
    write(
        root / "codebatch.toml",
        f"""
[tasks.linter]
command = ["sh", "{root}/lint", "{argument}"]
match = ["*.py", "!docs/"]
scope = "project"
records = "gcc"
version = false
env = {{CALLS = "{tmp_path}/calls"}}
""",
    )
    ran = codebatch("run", "docs", "--json").json
    assert (ran["success"], calls(tmp_path)) == (True, [])
    assert "no file matches" in ran["tasks_without_files"]["linter"]
    assert codebatch("run", "--include", "*.md", "--json").json["tasks_without_files"].keys() == {"linter"}
    ran = codebatch("run", "a.py", "--json").json
    assert (calls(tmp_path), ran["findings_left_out"]) == (["a.py" if argument == "{files}" else "."], {})
    rows = codebatch("query", "diagnostics", "--tool", "linter", "--batch", ran["batch_id"], "--json").records
    assert [row["path"] for row in rows] == ["a.py"]


def test_process_that_a_version_command_or_a_module_leaves_behind_is_killed(codebatch: CommandLine) -> None:
    """The end of the FIFO shows that no process has it open any more."""
    root = codebatch.directory
    os.mkfifo(root.parent / "held")
    reader = os.open(root.parent / "held", os.O_RDONLY | os.O_NONBLOCK)
    leave = f"(env -i setsid sleep 600 >{root.parent}/held 2>&1 &)"
    write(root / "linter", f'#!/bin/sh\n{leave}\n[ "$1" = --version ] && echo 1\ntrue\n').chmod(0o755)
    write(root / "task.py", f"import os\nos.system({leave!r})\ndef task(file):\n    yield from ()\n")
    linter = '[tasks.linter]\ncommand = ["./linter", "{file}"]\nmatch = ["*.sh"]\nrecords = "gcc"\n'
    write(root / "codebatch.toml", f'{linter}[tasks.own]\npython = "task.py:task"\n')
    write(root / "a.sh", "true\n")
    codebatch("run", "--dry-run")
    codebatch("run")
    assert os.read(reader, 9) == b""
    os.close(reader)


@pytest.mark.skipif(sys.platform != "linux", reason="stopped processes are found in /proc")
@pytest.mark.parametrize("stopped", ["$PPID", "-$PPID", "$(ps -o ppid= -p $PPID)", "$$"])
def test_time_limit_holds_if_a_linter_stops_its_worker_or_the_coordinator(codebatch: CommandLine, stopped: str) -> None:
    write(codebatch.directory / "a.sh", "true\n")
    write(codebatch.directory / "lint", f"kill -STOP {stopped}; exec sleep 600\n")
    write(
        codebatch.directory / "codebatch.toml",
        f"""
[tasks.slow]
command = ["sh", "{codebatch.directory}/lint", "{{file}}"]
match = ["*.sh"]
records = "gcc"
version = false
seconds_max = 0.5
""",
    )
    codebatch("run", status=3)
    evidence = [row["evidence"] for row in codebatch("errors", "--json").records]
    assert evidence == ["sh: it did not end within 0.5 seconds"]
