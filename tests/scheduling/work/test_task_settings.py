"""Limits of a batch and settings of tasks that a Set request changes."""

from __future__ import annotations

import pytest

from codebatch.model.text.quantities import parse_seconds
from codebatch.model.work.command import Command, CommandId, RetryChanges
from codebatch.model.work.request import Request, RequestHead, Set, TaskSettings, set_timeout
from codebatch.model.work.work_batch import TaskPolicy, Work
from codebatch.scheduling.events import SessionStarted, WorkerId, WorkerIdle
from codebatch.scheduling.lifecycle import CommandState
from codebatch.scheduling.work.command_plan import make_command_plan
from codebatch.scheduling.work.conductor import Conductor
from codebatch.scheduling.work.events import AttemptOutcome, OutcomesConcluded, RequestRead, StartCommand


@pytest.mark.parametrize("body", [Set(pools={"db": 2}), Set(max_parallel=2)])
def test_larger_limit_applies_to_waiting_commands_at_once(body: Set) -> None:
    ids = [CommandId("a"), CommandId("b")]
    is_pool = not body.max_parallel
    work = Work(
        source="test", root=b"/", order=tuple(ids), strategy="parallel", max_parallel=2 if is_pool else 1,
        policies=dict.fromkeys(ids, TaskPolicy(pools={"db": 1} if is_pool else {})), pools={"db": 1},
    )  # fmt: skip
    conductor = Conductor(make_command_plan(work, ids), concluded=OutcomesConcluded(()), epochs={})
    request = RequestRead(Request(RequestHead(n=1, at_ns=0, by="test"), body))
    events = (SessionStarted(), WorkerIdle(WorkerId(1)), WorkerIdle(WorkerId(2)), request)
    starts = [sum(isinstance(action, StartCommand) for action in conductor.handle(event)) for event in events]
    assert starts == [0, 1, 0, 1]


@pytest.mark.parametrize(("after_round", "is_retried"), [(0, True), (1, False)])
def test_changed_retries_judge_only_rounds_after_the_request(after_round: int, is_retried: bool) -> None:
    ids = [CommandId("a")]
    agenda = make_command_plan(Work(source="test", root=b"/", order=tuple(ids)), ids)
    failed = AttemptOutcome(item=0, round=1, type="failed", reason="exit", epoch=1)
    body = Set(tasks={ids[0]: TaskSettings(after_round=after_round, retries=1)})
    requests = [Request(RequestHead(n=1, at_ns=0, by="test"), body)]
    conductor = Conductor(agenda, concluded=OutcomesConcluded([failed]), epochs={0: 1}, requests=requests)
    assert (conductor.state(0) is not CommandState.FAILED) is is_retried


def test_changed_priority_moves_a_waiting_command_to_the_front() -> None:
    ids = [CommandId(id_) for id_ in "abc"]
    conductor = Conductor(
        make_command_plan(Work(source="test", root=b"/", order=tuple(ids)), ids),
        concluded=OutcomesConcluded(()), epochs={},
    )  # fmt: skip
    body = Set(tasks={ids[2]: TaskSettings(priority=1)})
    request = RequestRead(Request(RequestHead(n=1, at_ns=0, by="test"), body))
    events = (SessionStarted(), request, WorkerIdle(WorkerId(1)))
    actions = [action for event in events for action in conductor.handle(event)]
    assert [action.item for action in actions if isinstance(action, StartCommand)] == [2]


def test_last_changed_timeout_replaces_that_of_every_try() -> None:
    id_ = CommandId("a")
    command = Command(id=id_, run="x", timeout_seconds=1, tries=(RetryChanges(timeout_seconds=2, run="y"),))
    sets = [Set(tasks={id_: TaskSettings(timeout_seconds=limit)}) for limit in (3.0, 4.0, None)]
    changed = set_timeout(sets, command)
    assert (changed.for_try(0).timeout_seconds, changed.for_try(1).timeout_seconds) == (4.0, 4.0)
    assert changed.for_try(1).run == "y"
    assert set_timeout([Set(tasks={CommandId("b"): TaskSettings(timeout_seconds=3)})], command) == command


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("1.5s", 1.5), ("10m", 600), ("1h30m", 5400), ("1h30", None), ("", None), ("m", None), ("-1", None),
     ("1e3", None), ("nan", None), ("1.", None), (".5", None), ("\u0661", None), ("10m\n", None)],
)  # fmt: skip
def test_duration_is_read_or_refused(text: str, seconds: float | None) -> None:
    assert parse_seconds(text) == seconds
