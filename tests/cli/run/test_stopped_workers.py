"""Commands that stop or trace their worker: the worker is continued or replaced, and limits hold."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from codebatch.system.processes import proc
from tests.cli.work.test_work import WAITS, count, line, make_list, start, states, status
from tests.support.command_line import CommandLine, wait_until, write

__all__ = ["line"]

STOPS = "kill -STOP $PPID; "
HOLDS_MUCH = "x = b'x' * (200 << 20); import time; time.sleep(1000)"
TRACES = """
import ctypes, os, time
if ctypes.CDLL(None).ptrace(16, os.getppid(), None, None) == 0:
    open("traced", "w").close()
open("one.began", "a").write("began\\n")
time.sleep(1000)
"""


@pytest.mark.parametrize(
    ("limit", "does", "why"),
    [
        ("timeout_seconds = 1", "sleep 1000", "timed out"),
        ("stall_seconds = 1", "sleep 1000", "printed nothing for too long"),
        ("memory_mb_max = 60", f'exec {sys.executable} -c "{HOLDS_MUCH}"', "used too much memory"),
    ],
)
def test_limits_apply_to_a_command_that_stops_its_worker(line: CommandLine, limit: str, does: str, why: str) -> None:
    make_list(line, {"one": f"run = {json.dumps(STOPS + does)}\n{limit}\ngrace_seconds = 0.1"})
    ended = line("work", "run", status=3)
    assert "the worker of one (process " in ended.notes
    assert "was stopped: it is continued" in ended.notes
    assert why in ended.notes


def test_worker_traced_by_its_command_is_replaced(line: CommandLine) -> None:
    write(line.directory / "traces.py", TRACES)
    once = 'if_interrupted = "fail"\ntimeout_seconds = 1000'
    make_list(
        line,
        {"one": f"run = {json.dumps([sys.executable, 'traces.py'])}\n{once}", "two": 'run = "echo went on"'},
    )
    process = line.start("work", "run")
    wait_until(lambda: count(line, "one.began") > 0, "the command begins")
    if not (line.directory / "traced").exists():
        process.kill()
        process.communicate()
        pytest.skip("nothing may be traced here")
    assert "was traced by another process: it cannot be continued and is killed" in line.finish(process, status=3).notes
    assert states(line) == {"one": "FAILED", "two": "DONE"}


def test_two_signals_end_a_run_with_a_stopped_worker(line: CommandLine) -> None:
    make_list(line, {"one": f"run = {json.dumps('echo >one.began; ' + STOPS + 'sleep 1000')}\ngrace_seconds = 0.1"})
    process = start(line, began=("one",))
    process.send_signal(signal.SIGTERM)
    wait_until(lambda: bool(_requests(line)), "the signal is recorded")
    process.send_signal(signal.SIGTERM)
    assert "one stopped" in line.finish(process, status=128 + signal.SIGTERM).notes


def _requests(line: CommandLine) -> list[Path]:
    return list((line.directory / ".codebatch" / "batches").glob("batch-*/requests/0*"))


def test_stopped_worker_is_continued_after_adoption(line: CommandLine) -> None:
    make_list(line, {"one": f"run = {json.dumps(WAITS.format(id='one'))}"})
    process = start(line, began=("one",))
    process.kill()
    process.communicate()
    resumed = line.start("resume")
    wait_until(lambda: status(line)["coordinator"] is not None, "the batch has a new coordinator")
    (pid,) = (worker["pid"] for worker in status(line)["workers"])
    wait_until(lambda: b"adopted" in line("events").stdout, "the attempt is adopted")
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: not _is_stopped(pid), "the worker is continued")
    write(line.directory / "go", "")
    assert "was stopped: it is continued" in line.finish(resumed).notes


def _is_stopped(pid: int) -> bool:
    process_status = proc.process_stat(pid)
    return process_status is not None and process_status.is_stopped
