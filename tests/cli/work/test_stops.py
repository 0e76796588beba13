"""Work batches stopped by the user, at their time limit, or after a failure. Such stops are no interruptions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.work.test_work import WAITS, count, kill_workers, line, make_list, start, states, status
from tests.support.command_line import CommandLine, Ended, wait_until, write

__all__ = ["line"]

POLICIES = {"again": "restarts_max = 0", "fail": 'if_interrupted = "fail"', "ask": 'if_interrupted = "ask"'}
"""Tasks that would fail, or ask a question, if they were interrupted."""
AT_ONCE = "max_parallel = 3"


def _requests(line: CommandLine) -> list[Path]:
    return sorted((line.directory / ".codebatch" / "batches").glob("batch-*/requests/0*"))


def _stop_by_signals(line: CommandLine, process: subprocess.Popen[bytes], *numbers: signal.Signals) -> Ended:
    """Send signals, each after the previous one was recorded."""
    for number in numbers:
        before = len(_requests(line))
        process.send_signal(number)
        wait_until(lambda: len(_requests(line)) > before or process.poll() is not None, "the signal is recorded")  # noqa: B023
    return line.finish(process, status=128 + numbers[0])


def _explanations(line: CommandLine) -> set[str]:
    return {task["explanation"] for task in status(line)["tasks"]}


def _make_list(line: CommandLine, grace: float = 0.1) -> None:
    make_list(line, {name: f"{keys}\ngrace_seconds = {grace}" for name, keys in POLICIES.items()}, AT_ONCE)


def _wait_until_all_begin(line: CommandLine, times: int) -> None:
    wait_until(lambda: [count(line, f"{name}.began") for name in POLICIES] == [times] * 3, "all tasks begin")


def _check_completion(line: CommandLine) -> None:
    """Check that all tasks complete now. No stop counted as an interruption."""
    write(line.directory / "go", "")
    assert line("resume", "--json").json["counts"] == {"DONE": 3}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_task_stopped_by_signals_does_not_count_as_interrupted(line: CommandLine, number: signal.Signals) -> None:
    _make_list(line)
    for times, words in enumerate((("work", "run"), ("resume",)), 1):
        process = line.start(*words)
        _wait_until_all_begin(line, times)
        ended = _stop_by_signals(line, process, number, number)
        assert "[0/3] fail  stopped" in ended.notes
        assert f"stopped by {number.name}; resume with: codebatch resume" in ended.notes
        assert states(line) == dict.fromkeys(POLICIES, "READY")
        assert _explanations(line) == {f"stopped by {number.name}; `resume` restarts it"}
    attempts = line("work", "attempts", "--json").json
    assert [(attempt["outcome"], attempt["reason"], attempt["detail"]) for attempt in attempts] == [
        ("stopped", "signal", number.name)
    ] * 6
    assert f"stopped by {number.name}" in line("work", "attempts").text
    text = line("events").text
    assert f"stopped ask by {number.name}" in text
    assert "interrupted" not in text
    _check_completion(line)


def test_task_killed_by_a_third_signal_does_not_count_as_interrupted(line: CommandLine) -> None:
    tasks = {
        name: f"{keys}\ngrace_seconds = 1000\nrun = {json.dumps(f'trap : TERM; {WAITS.format(id=name)}')}"
        for name, keys in POLICIES.items()
    }
    make_list(line, tasks, AT_ONCE)
    process = line.start("work", "run")
    _wait_until_all_begin(line, 1)
    _stop_by_signals(line, process, signal.SIGTERM, signal.SIGTERM, signal.SIGTERM)
    assert _explanations(line) == {"stopped by SIGTERM; `resume` restarts it"}
    _check_completion(line)


def test_repeatable_task_killed_after_sigterm_is_restarted(line: CommandLine) -> None:
    """When a container is stopped, its processes receive SIGTERM, and later SIGKILL."""
    _make_list(line)
    process = line.start("work", "run")
    _wait_until_all_begin(line, 1)
    process.send_signal(signal.SIGTERM)
    wait_until(lambda: bool(_requests(line)), "the signal is recorded")
    kill_workers(line)
    process.communicate()
    assert states(line) == {"again": "READY", "fail": "PENDING", "ask": "PENDING"}
    assert "stopped by SIGTERM; `resume` restarts it" in _explanations(line)
    assert "its worker or the machine died" in " ".join(_explanations(line))
    write(line.directory / "go", "")
    assert line("resume", "--json", status=3).json["counts"] == {"DONE": 1, "FAILED": 1, "BLOCKED": 1}


def test_worker_killed_by_another_process_counts_as_interrupted(line: CommandLine) -> None:
    """The OOM killer kills workers like this."""
    _make_list(line)
    process = line.start("work", "run")
    _wait_until_all_begin(line, 1)
    for pid in (worker["pid"] for worker in status(line)["workers"]):
        os.kill(pid, signal.SIGKILL)
    line.finish(process, status=3)
    assert states(line) == {"again": "FAILED", "fail": "FAILED", "ask": "BLOCKED"}
    assert "interrupted: its worker or the machine died" in _explanations(line)


@pytest.mark.parametrize("how", [("--grace", "0.1"), ("--force",)])
def test_cancelled_task_does_not_count_as_interrupted(line: CommandLine, how: tuple[str, ...]) -> None:
    _make_list(line)
    process = line.start("work", "run")
    _wait_until_all_begin(line, 1)
    assert line("cancel", *how, "--json").json["status"] == "CANCELLED"
    process.communicate()
    _check_completion(line)


def test_batch_time_limit_stops_the_batch_and_restarts_with_resume(line: CommandLine) -> None:
    make_list(
        line,
        {"one": 'run = "true"', "two": 'needs = ["one"]\ngrace_seconds = 0.1', "three": 'needs = ["two"]', "four": ""},
        "timeout_seconds = 1000",
    )
    ended = line("work", "run", "--timeout", "1", status=3)
    batch_id = status(line)["batch_id"]
    assert "the batch reached its time limit: stopping 1 task" in ended.notes
    assert f"batch {batch_id} reached its time limit of 1.0s" in ended.notes
    assert ended.text.startswith("PARTIAL: 1 of 4 done")
    stopped = status(line)
    assert (stopped["status"], stopped["timed_out"], stopped["stalled"]) == ("PARTIAL", True, False)
    assert states(line) == {"one": "DONE", "two": "PENDING", "three": "PENDING", "four": "PENDING"}
    assert _explanations(line) == {
        "",
        "stopped: the batch reached its time limit; `resume` restarts it",
        "waits for two",
        "no new tasks are started: the batch reached its time limit",
    }
    assert "(time limit reached)" in line("status").text
    assert "stopping 1 task: the batch reached its time limit" in line("events").text
    assert line("follow", status=3).text.splitlines()[-1].split(" ", 1)[1].startswith("PARTIAL")
    write(line.directory / "go", "")
    assert line("resume", "--json").json["counts"] == {"DONE": 4}
    assert not status(line)["timed_out"]


def test_halt_now_stops_running_tasks_after_a_failure(line: CommandLine) -> None:
    fails = "while [ ! -e one.began ] || [ ! -e three.began ]; do sleep 0.02; done; test -e go"
    make_list(line, {"one": "grace_seconds = 0.1", "two": f'run = "{fails}"', "three": "grace_seconds = 0.1"}, AT_ONCE)
    ended = line("work", "run", "--halt", "now", status=3)
    assert "two failed: stopping 2 tasks" in ended.notes
    assert states(line) == {"one": "PENDING", "two": "FAILED", "three": "PENDING"}
    assert "stopped: two failed; `resume` restarts it" in _explanations(line)
    assert "1 task of batch" in ended.notes
    write(line.directory / "go", "")
    assert line("resume", "--json").json["counts"] == {"DONE": 3}
    assert [count(line, f"{name}.began") for name in ("one", "three")] == [2, 2]


def test_task_skipped_while_running_is_cancelled_not_interrupted(line: CommandLine) -> None:
    make_list(
        line, {"once": 'if_interrupted = "fail"\ngrace_seconds = 0.1', "two": f'run = "{WAITS.format(id="two")}"'}
    )
    process = start(line, began=("once",))
    line("work", "skip", "once")
    line("work", "set", "max-parallel=1")
    wait_until(lambda: count(line, "two.began") > 0, "the next one begins")
    assert states(line)["once"] == "SKIPPED"
    write(line.directory / "go", "")
    line.finish(process, status=3)
    assert [attempt["outcome"] for attempt in line("work", "attempts", "--json").json] == ["cancelled", "result"]
    assert line("work", "retry", "once", "--json").json["counts"] == {"DONE": 2}
