"""Options that override a task list, and their effect on a batch, with real processes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.work.test_work import line, make_list, status
from tests.support.command_line import CommandLine

__all__ = ["line"]

FAILS = {"a": 'run = "false"', "b": 'run = "true"', "c": 'run = "true"\nneeds = ["a"]'}


def run_task_list(line: CommandLine, *options: str, code: int) -> dict[str, Any]:
    answer = json.loads(line("work", "run", *options, "--json", status=code).stdout)
    assert isinstance(answer, dict)
    return answer


def states(answer: dict[str, Any]) -> dict[str, str]:
    return {task["id"]: task["state"] for task in answer["tasks"]}


def last_event(line: CommandLine) -> str:
    event = json.loads(line("events", "--json").lines[-1])["event"]
    assert isinstance(event, str)
    return event


@pytest.mark.parametrize(
    ("options", "states_then"),
    [
        ((), {"a": "FAILED", "b": "DONE", "c": "SKIPPED"}),
        (("--on-failure", "continue"), {"a": "FAILED", "b": "DONE", "c": "DONE"}),
        (("--on-failure", "stop"), {"a": "FAILED", "b": "PENDING", "c": "SKIPPED"}),
        (("--on-failure", "stop", "--failures-max", "2"), {"a": "FAILED", "b": "DONE", "c": "SKIPPED"}),
    ],
)
def test_option_on_failure_decides_the_states_of_other_tasks(
    line: CommandLine, options: tuple[str, ...], states_then: dict[str, str]
) -> None:
    make_list(line, FAILS)
    assert states(run_task_list(line, *options, code=3)) == states_then


def test_batch_without_any_done_task_is_failed(line: CommandLine) -> None:
    make_list(line, {"a": 'run = "false"', "c": 'run = "true"\nneeds = ["a"]'})
    assert run_task_list(line, code=3)["status"] == "FAILED"
    assert last_event(line) == "BATCH_FAILED"


def test_strategy_and_parallelism_can_be_set_on_the_command_line(line: CommandLine) -> None:
    """Each task waits for the other. They end only if both run at once."""
    waits = 'run = "touch {0}.here; while [ ! -e {1}.here ]; do sleep 0.02; done"\ntimeout_seconds = 600'
    make_list(line, {"a": waits.format("a", "b"), "b": waits.format("b", "a")})
    answer = run_task_list(line, "--strategy", "parallel", "-j", "2", code=0)
    assert (answer["status"], answer["strategy"], answer["max_parallel"]) == ("COMPLETED", "parallel", 2)
    assert run_task_list(line, "--strategy", "serial", code=0)["strategy"] == "serial"


def test_stalled_task_fails_or_asks_according_to_on_stall(line: CommandLine) -> None:
    silent = 'run = "echo here; exec sleep 600"\nstall_seconds = 0.4\ngrace_seconds = 1'
    make_list(line, {"fails": silent, "asks": f'{silent}\non_stall = "ask"'})
    answer = run_task_list(line, "-j", "2", code=3)
    assert {task["id"]: (task["state"], task["reason"]) for task in answer["tasks"]} == {
        "fails": ("FAILED", "stall"),
        "asks": ("BLOCKED", "stall"),
    }
    (question,) = line("work", "questions", "--json").json
    assert (question["task"], question["kind"]) == ("asks", "stall")


def test_task_rejected_by_its_check_fails_and_its_dependents_are_skipped(line: CommandLine) -> None:
    make_list(line, {"a": 'run = "true"\ncheck = "echo no; exit 4"', "b": 'run = "true"\nneeds = ["a"]'})
    answer = run_task_list(line, code=3)
    assert {task["id"]: (task["state"], task["reason"]) for task in answer["tasks"]} == {
        "a": ("FAILED", "check"),
        "b": ("SKIPPED", None),
    }


def test_long_task_emits_progress_events(line: CommandLine) -> None:
    make_list(line, {"a": 'run = "sleep 5.5"'})
    line("work", "run")
    progress = next(  # On a busy machine, there are several such events.
        event for event in map(json.loads, line("events", "--json").lines) if event["event"] == "BATCH_PROGRESS"
    )
    assert progress["counts"] == {"RUNNING": 1}
    assert (progress["eta_seconds"], progress["without_estimate"]) == (None, 0)
    assert [each["task"] for each in progress["running"]] == ["a"]
    assert status(line)["status"] == "COMPLETED"
