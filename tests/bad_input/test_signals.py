"""Ctrl-C and similar signals in every phase of a run.

The exit status shows the signal, no process or file is left behind, and the next run has the same digest.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.support.command_line import CommandLine, make_many, set_apart, wait_until

COUNT = 40
SMALL_SHARDS = "[shard]\nfiles_average = 4\nfiles_min = 2\nfiles_max = 8\n"


@pytest.fixture
def codebatch(tmp_path: Path) -> CommandLine:
    """The command line in a directory with a tree of many small shards."""
    make_many(tmp_path / "many", COUNT)
    (tmp_path / "codebatch.toml").write_text(SMALL_SHARDS)
    codebatch = CommandLine(tmp_path)
    set_apart(codebatch, "many")
    return codebatch


def has(pattern: str) -> Callable[[Path], bool]:
    """Return a predicate for stores that have a file matching a pattern."""
    return lambda store: any(store.glob(pattern))


def has_journal_event(event: str) -> Callable[[Path], bool]:
    """Return a predicate for stores with an event in one of their journals."""
    needle = f'"event":"{event}"'.encode()
    return lambda store: any(needle in path.read_bytes() for path in store.glob("batches/batch-*/journal/*.jsonl"))


MOMENTS = {
    "the store is made": has("store.json"),
    "an object is written": has("objects/*"),
    "the snapshot is published": has("snapshots/snap-*"),
    "the batch is made": has("batches/batch-*"),
    "the coordinator has begun": has_journal_event("started"),
    "a worker is spawned": has_journal_event("spawned"),
    "a unit has begun": has_journal_event("began"),
    "a unit is committed": has_journal_event("committed"),
    "the coordinator has ended its work": has_journal_event("ended"),
    "merging has begun": has("batches/*/outputs/.*.tmp"),
}


def children_of(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_ends_the_run_with_130_and_the_next_run_completes(
    codebatch: CommandLine, digest_of_many: str, moment: str
) -> None:
    """The moment may have passed when the signal arrives. Then the run completes, which is right too."""
    store = codebatch.directory / ".codebatch"
    process = codebatch.start("run", "many", "--json")
    children: dict[int, psutil.Process] = {}

    def is_the_moment() -> bool:
        children.update({child.pid: child for child in children_of(process)})
        return MOMENTS[moment](store) or process.poll() is not None

    wait_until(is_the_moment, moment)
    children.update({child.pid: child for child in children_of(process)})
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    ended = codebatch.check("run", process.returncode, stdout, stderr, process.returncode)
    assert process.returncode in (0, 130), ended.notes
    assert stdout == b"" or ended.json["batch_id"]
    _, alive = psutil.wait_procs(children.values(), timeout=10)
    assert alive == [], "a worker outlived its coordinator"
    if process.returncode == 130 and has_journal_event("spawned")(store) and stdout:
        assert "resume with: codebatch resume --batch" in ended.notes
    whole = codebatch("run", "many", "--json").json
    assert (whole["status"], whole["result_digest"]) == ("COMPLETED", digest_of_many)


def test_ctrl_c_commits_finished_work_and_prints_a_resume_hint(codebatch: CommandLine, digest_of_many: str) -> None:
    store = codebatch.directory / ".codebatch"
    process = codebatch.start("run", "many", "-j", "1")
    wait_until(lambda: has_journal_event("began")(store), "a unit has begun")
    process.send_signal(signal.SIGINT)
    ended = codebatch.finish(process, status=130)
    (hint,) = [line for line in ended.notes.splitlines() if "resume with: " in line]
    continued = codebatch.shell(hint.partition("resume with: ")[2] + " --json").json
    assert (continued["status"], continued["result_digest"]) == ("COMPLETED", digest_of_many)


def test_sigterm_ends_the_run_with_143(codebatch: CommandLine, digest_of_many: str) -> None:
    store = codebatch.directory / ".codebatch"
    process = codebatch.start("run", "many", "--json")
    wait_until(lambda: has_journal_event("began")(store), "a unit has begun")
    process.send_signal(signal.SIGTERM)
    stdout, _ = process.communicate(timeout=60)
    assert process.returncode == 143
    assert json.loads(stdout)["status"] in ("RUNNING", "COMPLETED")
    assert codebatch("resume", "--json").json["result_digest"] == digest_of_many


def test_killed_run_is_stalled_and_the_next_run_takes_over_immediately(
    codebatch: CommandLine, digest_of_many: str
) -> None:
    store = codebatch.directory / ".codebatch"
    process = codebatch.start("run", "many", "-j", "1")
    wait_until(lambda: has_journal_event("began")(store), "a unit has begun")
    children = children_of(process)
    process.kill()
    process.communicate()
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []
    status = codebatch("status", "--json")
    assert status.json["status"] in ("RUNNING", "COMPLETED")
    if status.json["status"] == "RUNNING":
        assert status.json["stalled"]
        assert status.json["holders"] == []
        assert "resume with: codebatch resume --batch" in status.notes
    whole = codebatch("run", "many", "--json").json
    assert whole["action"] in ("resumed", "up to date")
    assert (whole["status"], whole["result_digest"]) == ("COMPLETED", digest_of_many)


def test_second_run_helps_the_first_and_both_succeed(codebatch: CommandLine, digest_of_many: str) -> None:
    store = codebatch.directory / ".codebatch"
    first = codebatch.start("run", "many", "--json", "-j", "1")
    wait_until(lambda: has_journal_event("began")(store), "a unit has begun")
    second = codebatch.start("run", "many", "--json", "-j", "1")
    answers = [codebatch.finish(process).json for process in (first, second)]
    assert {answer["batch_id"] for answer in answers} == {answers[0]["batch_id"]}
    assert {answer["result_digest"] for answer in answers} == {digest_of_many}
    assert answers[1]["action"] in ("joined", "resumed", "up to date")
