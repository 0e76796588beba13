"""Processes that are stopped, suspended, interrupted and killed from outside: no file fails, and no process is left."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from codebatch.store.batches.journal import Began, Committed, JournalLine, Lost, Refused, read_journal
from tests.faults.conftest import Poisoned, orphans
from tests.support.command_line import CommandLine, wait_until
from tests.support.worker_processes import check_no_process_left, finished, open_latest

COMMON = ("run", "--batch", "latest", "--store", "store", "--json")
SLOW = {f"slow{n:02}.txt": "slow" for n in range(24)}


def _journal(run: CommandLine) -> list[JournalLine]:
    batch = open_latest(run.directory / "store")
    return read_journal(batch.files, batch.root)


def _has_begun(run: CommandLine, units: int = 1) -> bool:
    return sum(isinstance(line.event, Began) for line in _journal(run)) >= units


def _family(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    coordinator = psutil.Process(process.pid)
    return [coordinator, *coordinator.children(recursive=True)]


def _stop(process: subprocess.Popen[bytes], number: int) -> None:
    for member in _family(process):
        member.send_signal(number)


def test_stopped_run_loses_its_leases_and_succeeds_after_continuing(poisoned: Poisoned) -> None:
    run = poisoned(SLOW, shard=8)
    stopped = run.start(*COMMON, "-j", "1")
    wait_until(lambda: _has_begun(run), "a unit has begun")
    _stop(stopped, signal.SIGSTOP)
    began = time.monotonic()
    answer = run(*COMMON, "-j", "2", "--file-seconds", "1").json
    assert (answer["status"], answer["action"]) == ("COMPLETED", "joined")
    assert time.monotonic() - began > 6.0, "the second run did not wait until the leases expired"
    expected = finished(open_latest(run.directory / "store"))

    _stop(stopped, signal.SIGCONT)
    assert json.loads(run.finish(stopped).stdout)["result_digest"] == answer["result_digest"]
    again = finished(open_latest(run.directory / "store"))
    assert (again.result_digest, again.sums) == (expected.result_digest, expected.sums)
    lines = _journal(run)
    begun = [(line.holder, line.event) for line in lines if isinstance(line.event, Began)]
    taken_over = [event for _, event in begun if event.epoch == 2]
    assert taken_over, "no unit was taken over"
    for second in taken_over:
        committed = [(line.holder, line.event) for line in lines if isinstance(line.event, Committed)]
        committers = {holder for holder, event in committed if event.shard == second.shard}
        late = [holder for holder, event in begun if event.shard == second.shard and event.epoch == 1]
        assert late[0] not in committers, "a late commit was not refused"
    assert not [line for line in lines if isinstance(line.event, Refused)], (
        "a worker requested a lease that another process was known to hold"
    )


def test_status_names_the_holders_of_a_batch_and_reports_a_stall(poisoned: Poisoned) -> None:
    run = poisoned(SLOW)
    process = run.start(*COMMON, "-j", "1")
    wait_until(lambda: _has_begun(run), "a unit has begun")
    running = run("status", "--store", "store", "--json").json
    assert running["status"] == "RUNNING"
    assert running["stalled"] is False
    assert process.pid in [holder["pid"] for holder in running["holders"]]
    assert all(holder["since"] for holder in running["holders"])
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    left = run("status", "--store", "store", "--json").json
    assert (left["status"], left["stalled"], left["holders"]) == ("RUNNING", True, [])
    assert "interrupted: no process runs it" in run("status", "--store", "store").text
    run(*COMMON)
    assert not [line for line in _journal(run) if isinstance(line.event, Refused)], (
        "the next run did not know the epochs of dead holders"
    )


def test_ctrl_z_stops_the_workers_and_blames_no_file(poisoned: Poisoned) -> None:
    run = poisoned(SLOW, shard=8)
    process = run.start(*COMMON, "-j", "2", "--file-seconds", "1")
    wait_until(lambda: _has_begun(run, 2), "both workers are at work")
    os.kill(process.pid, signal.SIGTSTP)
    wait_until(
        lambda: all(member.status() == psutil.STATUS_STOPPED for member in _family(process)), "all processes stopped"
    )
    time.sleep(3.0)
    os.kill(process.pid, signal.SIGCONT)
    answer = json.loads(run.finish(process).stdout)
    assert (answer["status"], answer["failures"]) == ("COMPLETED", 0)
    assert not [line for line in _journal(run) if isinstance(line.event, Lost)]


def test_suspended_worker_is_not_overdue(poisoned: Poisoned) -> None:
    """All processes are suspended without notice, as when a laptop sleeps or a container is frozen."""
    run = poisoned(SLOW, shard=8)
    process = run.start(*COMMON, "-j", "2", "--file-seconds", "2")
    wait_until(lambda: _has_begun(run, 2), "both workers are at work")
    _stop(process, signal.SIGSTOP)
    time.sleep(4.0)
    _stop(process, signal.SIGCONT)
    answer = json.loads(run.finish(process).stdout)
    assert (answer["status"], answer["failures"]) == ("COMPLETED", 0)
    assert not [line for line in _journal(run) if isinstance(line.event, Lost)]


def test_kills_from_outside_fail_no_file(poisoned: Poisoned) -> None:
    run = poisoned({f"slow{n:02}.txt": "slow" for n in range(60)}, shard=2)
    process = run.start(*COMMON, "-j", "3")
    wait_until(lambda: _has_begun(run, 1), "a worker is at work, so the process that imports the task has ended")
    chance = random.Random(1)
    killed = 0
    while process.poll() is None and killed < 12:
        time.sleep(0.4)
        with contextlib.suppress(psutil.NoSuchProcess, IndexError):
            chance.choice(_family(process)[1:]).kill()
            killed += 1
    answer = json.loads(run.finish(process).stdout)
    assert killed >= 5
    assert (answer["status"], answer["failures"]) == ("COMPLETED", 0)


@pytest.mark.parametrize(("count", "number"), [(1, signal.SIGHUP), (2, signal.SIGTERM), (3, signal.SIGINT)])
def test_repeated_signals_leave_no_process(poisoned: Poisoned, count: int, number: int) -> None:
    run = poisoned({"a.txt": "leave_a_child", "b.txt": "loop", "c.txt": "loop", **SLOW}, shard=4)
    before = signal.signal(number, signal.SIG_DFL)  # The tests themselves may run under nohup.
    try:
        process = run.start(*COMMON, "-j", "2", "--file-seconds", "4")
    finally:
        signal.signal(number, before)
    wait_until(lambda: _has_begun(run, 2), "both workers are at work")
    for _ in range(count):
        os.kill(process.pid, number)
        time.sleep(0.5)
    run.finish(process, status=128 + number)
    check_no_process_left(open_latest(run.directory / "store"))
    assert not orphans()


def test_file_interrupted_by_the_user_is_not_failed(poisoned: Poisoned, tmp_path: Path) -> None:
    """The file has killed a worker before, so one more death of a worker would make it fail."""
    run = poisoned({"a.txt": "crash_then_loop"})
    process = run.start(*COMMON, "-j", "1")
    wait_until(lambda: _has_begun(run, 2), "the file is retried")
    for _ in range(2):
        os.kill(process.pid, signal.SIGINT)
        time.sleep(0.3)
    run.finish(process, status=130)
    (tmp_path / "antidote").touch()
    answer = run(*COMMON).json
    assert (answer["status"], answer["failures"]) == ("COMPLETED", 0)


def test_third_signal_ends_a_task_that_ignores_signals(poisoned: Poisoned) -> None:
    run = poisoned({"a.txt": "ignore_sigterm"})
    process = run.start(*COMMON, "-j", "1", "--file-seconds", "600")
    wait_until(lambda: _has_begun(run), "a unit has begun")
    time.sleep(0.5)
    for _ in range(2):
        os.kill(process.pid, signal.SIGINT)
        time.sleep(0.3)
    assert process.poll() is None
    os.kill(process.pid, signal.SIGINT)
    process.wait(timeout=30)
    run.finish(process, status=130)


def test_a_run_under_nohup_outlives_its_terminal(poisoned: Poisoned) -> None:
    run = poisoned(SLOW, shard=8)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = run.start(*COMMON, "-j", "2")
    finally:
        signal.signal(signal.SIGHUP, before)
    wait_until(lambda: _has_begun(run), "a unit has begun")
    os.kill(process.pid, signal.SIGHUP)
    assert json.loads(run.finish(process).stdout)["status"] == "COMPLETED"


def test_closed_reader_of_a_pipe_is_harmless(poisoned: Poisoned, tmp_path: Path) -> None:
    run = poisoned({f"{n:04}.txt": "x" for n in range(2000)}, shard=64)
    run(*COMMON)
    ended = run.shell("codebatch query outputs --store store --kind metric | head -1; echo ${PIPESTATUS[0]}")
    assert ended.lines[-1] == "0"
    assert ended.notes == ""
