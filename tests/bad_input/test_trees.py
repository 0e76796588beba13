"""Source trees that are empty, unreadable, deep, huge, or change while they are read."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from tests.support.command_line import UNPRIVILEGED, CommandLine, make_project, permissions_bind, write


def test_an_empty_directory_is_nothing_to_do(codebatch: CommandLine) -> None:
    (codebatch.directory / "empty").mkdir()
    ended = codebatch("run", "empty", "--json", status=5)
    assert ended.error["code"] == "nothing_to_do"
    assert codebatch("run", "empty", "--allow-empty", "--json").json["status"] == "COMPLETED"
    for command in ("status", "summary", "errors", "top", "files", "tasks", "shards --task parse", "query outputs"):
        codebatch(*command.split())
        codebatch(*command.split(), "--json")


def test_tree_without_selected_files_is_nothing_to_do(codebatch: CommandLine) -> None:
    make_project(codebatch.directory / "project")
    assert codebatch("run", "project", "--include", "*.zig", status=5).notes.count("error:") == 1
    codebatch("run", "project", "--exclude", "*", status=5)
    assert codebatch("run", "project", "--json").json["files"] == 9


@permissions_bind
@pytest.mark.parametrize("what", ["src/main.py", "src"])
def test_unreadable_file_is_named_and_may_be_excluded(tmp_path: Path, what: str) -> None:
    codebatch = CommandLine(tmp_path, prefix=UNPRIVILEGED)
    make_project(tmp_path / "project")
    (tmp_path / "project" / what).chmod(0)
    refused = codebatch("run", "project", "--json", status=4).error
    assert refused["code"] == "source_unreadable"
    assert refused["message"] == f"cannot read {what}: Permission denied"
    assert "--exclude" in refused["hint"]
    left_out = codebatch("run", "project", "--exclude", what, "--json").json
    assert left_out["files"] == {"src": 7, "src/main.py": 8}[what]
    (tmp_path / "project" / what).chmod(0o755)
    assert codebatch("run", "project", "--json").json["files"] == 9


@permissions_bind
def test_read_only_tree_is_analysed_and_unchanged(tmp_path: Path) -> None:
    codebatch = CommandLine(tmp_path, prefix=UNPRIVILEGED)
    project = make_project(tmp_path / "project")
    for path in (*project.rglob("*"), project):
        path.chmod(path.stat().st_mode & 0o555)
    before = {path: path.stat() for path in (*project.rglob("*"), project)}
    assert codebatch("run", "project", "--store", "elsewhere", "--json").json["status"] == "COMPLETED"
    for refused in (
        codebatch("run", ".", "--store", "project/store", "--json", status=4).error,
        codebatch("run", ".", "--json", status=4, cwd=project / "src").error,
    ):
        assert refused["code"] == "store_unwritable"
        assert "--store PATH" in refused["hint"]
    after = {path: path.stat() for path in (*project.rglob("*"), project)}
    assert {path: (now.st_mode, now.st_mtime_ns) for path, now in after.items()} == {
        path: (was.st_mode, was.st_mtime_ns) for path, was in before.items()
    }


def test_deeply_nested_brackets_yield_a_result_or_a_failure(codebatch: CommandLine) -> None:
    deep = 100_000
    for name, text in (
        ("deep.json", "[" * deep + "]" * deep),
        ("deep.py", "x = " + "(" * deep + ")" * deep),
        ("deep.js", "x = " + "[" * deep + "]" * deep + ";"),
        ("open.c", "int x = " + "(" * deep),
        ("blocks.rs", "fn main() " + "{" * deep + "}" * deep),
    ):
        write(codebatch.directory / "deep" / name, text + "\n")
    write(codebatch.directory / "deep" / "fine.py", "import os\n")
    process = codebatch.start("run", "deep", "--json", "--file-seconds", "20")
    stdout, stderr = process.communicate(timeout=200)
    assert process.returncode in (0, 3), stderr
    ended = codebatch.check("run", process.returncode, stdout, stderr, process.returncode)
    assert ended.json["status"] == ("COMPLETED" if process.returncode == 0 else "PARTIAL")
    failed = {record["path"] for record in codebatch("query", "outputs", "--kind", "failure", "--json").records}
    analysed = {record["path"] for record in codebatch("query", "outputs", "--kind", "file", "--json").records}
    assert failed | analysed == {"deep.json", "deep.py", "deep.js", "open.c", "blocks.rs", "fine.py"}
    assert "fine.py" not in failed


def test_deeply_nested_directories_are_analysed(codebatch: CommandLine) -> None:
    levels = 500
    fd = os.open(codebatch.directory, os.O_RDONLY)
    for name in ("deep", *["dir"] * levels):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    file = os.open("a.py", os.O_WRONLY | os.O_CREAT, dir_fd=fd)
    os.write(file, b"import os\n")
    os.close(file)
    os.close(fd)
    assert codebatch("run", "deep", "--json").json["files"] == 1
    (diagnostics,) = codebatch("query", "diagnostics", "--json").records
    assert diagnostics["path"] == "dir/" * levels + "a.py"
    assert codebatch("inspect", diagnostics["path"]).lines
    assert codebatch("run", "deep", "--json").json["action"] == "up to date"


@pytest.mark.slow
def test_a_file_of_100_megabytes_is_stored_and_classified(codebatch: CommandLine) -> None:
    with open(write(codebatch.directory / "huge" / "huge.py", ""), "wb") as file:
        for _ in range(100):
            file.write(b"x = 1\n" * 174_763)
    ended = codebatch("run", "huge", "--json")
    assert ended.json["status"] == "COMPLETED"
    (about,) = codebatch("query", "outputs", "--kind", "file", "--json").records
    assert about["class"] != "text"


def test_constantly_changing_file_fails_the_snapshot_until_it_stops(codebatch: CommandLine) -> None:
    """A writer replaces the file without pause while codebatch reads it.

    Either the snapshot reads the file between two writes, or it fails. A stored file is always one whole version.
    """
    versions = {bytes([65 + n]) * 3_000_000 for n in range(4)}
    source = codebatch.directory / "source"
    write(source / "busy.txt", min(versions))
    stop = threading.Event()

    def keep_writing() -> None:
        while not stop.is_set():
            for version in versions:
                with open(source / "busy.txt", "r+b") as file:
                    file.write(version)

    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        process = codebatch.start("snapshot", "source", "--rehash", "--json")
        stdout, stderr = process.communicate(timeout=60)
    finally:
        stop.set()
        writer.join()
    assert process.returncode in (0, 4), stderr
    ended = codebatch.check("snapshot", process.returncode, stdout, stderr, process.returncode)
    if process.returncode == 4:
        assert ended.error["code"] == "snapshot_unstable"
        assert "busy.txt" in ended.error["message"]
        assert codebatch("snapshot", "list", "--json").json == []
    assert codebatch("snapshot", "source", "--json").json["bytes"] == 3_000_000


def test_special_files_are_skipped_and_reported(codebatch: CommandLine) -> None:
    make_project(codebatch.directory / "project")
    os.mkfifo(codebatch.directory / "project" / "pipe")
    os.symlink("nowhere", codebatch.directory / "project" / "dangling")
    os.symlink("..", codebatch.directory / "project" / "loop")
    ended = codebatch("snapshot", "project", "--json")
    assert ended.json["files"] == 9
    assert [item["reason"] for item in ended.json["skipped"]] == ["fifo"]
    assert "skipped 1 fifo" in ended.notes
    assert codebatch("files", "--why", "project/pipe", "--json").json["included"] is False


def test_named_special_file_is_rejected(codebatch: CommandLine) -> None:
    os.mkfifo(codebatch.directory / "pipe")
    for path in ("pipe", "/dev/null", "nowhere", "\udcff", "x" * 300, "", "a\x01b"):
        codebatch("run", path, "--json", status=2)
    assert not (codebatch.directory / ".codebatch").exists()


def test_file_that_kills_its_worker_is_a_failure_that_resume_retries(codebatch: CommandLine) -> None:
    """The time limit kills the worker: it is far below the time that the file takes."""
    make_project(codebatch.directory / "project")
    write(codebatch.directory / "project" / "long.py", "x = [" + "[1, 'a'], " * 40_000 + "]\n")
    ended = codebatch("run", "project", "--file-seconds", "0.05", "--json", status=3)
    assert ended.json["status"] == "PARTIAL"
    assert ended.error["code"] == "batch_incomplete"
    assert "resume" in ended.error["hint"]
    failures = [row for row in codebatch("errors", "--json").records if row["kind"] == "failure"]
    assert {row["path"] for row in failures} >= {"long.py"}
    assert {row["reason"] for row in failures} <= {"timeout", "needs"}
    again = codebatch("run", "project", "--json", status=3)
    assert again.json["action"] == "already ended"
    assert again.json["result_digest"] == ended.json["result_digest"]
    assert codebatch("resume", "--json").json["status"] == "COMPLETED"
    assert codebatch("resume", "--json").json["action"] == "up to date"
    assert [row for row in codebatch("errors", "--json").records if row["kind"] == "failure"] == []


def test_run_ends_on_hangup(codebatch: CommandLine) -> None:
    make_project(codebatch.directory / "project")
    process = codebatch.start("run", "project")
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=60)
    assert process.returncode in (-signal.SIGHUP, 129, 0)
    assert codebatch("run", "project", "--json").json["status"] == "COMPLETED"
