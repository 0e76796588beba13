"""Attempts that are ended early by a signal, the time limit of the batch, or a failure that halts the batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from codebatch.model.work.command import CommandId
from codebatch.model.work.request import Cancel, Open, Request, RequestBody, RequestHead, Stop
from codebatch.model.work.work_batch import InterruptedAction, TaskPolicy, Work
from codebatch.scheduling.actions import CompleteSession, EndDrained
from codebatch.scheduling.events import DrainRequested, SessionStarted, WorkerId, WorkerIdle
from codebatch.scheduling.lifecycle import BatchState, CommandState
from codebatch.scheduling.work.command_plan import CommandPlan, make_command_plan
from codebatch.scheduling.work.conductor import DEATHS_IN_A_ROW_MAX, Conductor
from codebatch.scheduling.work.events import (
    BATCH_TIME_LIMIT_ITEM,
    AttemptOutcome,
    CommandAction,
    CommandEvent,
    CommitInterrupted,
    MakeRequest,
    OutcomesConcluded,
    RequestRead,
    SetTimer,
    SignalReceived,
    StartCommand,
    TerminateCommand,
    WaitEnded,
    WorkerDied,
)

A, B, C = (CommandId(name) for name in "abc")


def _agenda(*ids: CommandId, policy: TaskPolicy | None = None, **settings: Any) -> CommandPlan:
    work = Work(
        source="test",
        root=b"/",
        order=ids,
        policies=dict.fromkeys(ids, policy or TaskPolicy()),
        strategy="parallel",
        max_parallel=8,
        **settings,
    )
    return make_command_plan(work, ids)


def _request(n: int, body: RequestBody) -> Request:
    return Request(RequestHead(n=n, at_ns=0, by="test"), body)


class _Run:
    """A conductor and its workers. Each start takes its lease, and the conductor reads its own requests."""

    def __init__(self, agenda: CommandPlan, *requests: RequestBody, epochs: Mapping[int, int] | None = None) -> None:
        self.requests = [_request(n, body) for n, body in enumerate(requests, 1)]
        self.conductor = Conductor(agenda, concluded=OutcomesConcluded(()), epochs=epochs or {}, requests=self.requests)
        self.actions: list[CommandAction] = []
        self.at: dict[int, WorkerId] = {}
        self.hand(SessionStarted())

    def hand(self, *events: CommandEvent) -> None:
        pending = list(events)
        while pending:
            for action in self.conductor.handle(pending.pop(0)):
                self.actions.append(action)
                if isinstance(action, MakeRequest):
                    self.requests.append(_request(len(self.requests) + 1, action.body))
                    pending.append(RequestRead(self.requests[-1]))
                elif isinstance(action, StartCommand):
                    self.at[action.item] = action.worker

    def begin_all(self) -> None:
        self.hand(*(WorkerIdle(WorkerId(number)) for number in range(1, len(self.conductor.agenda.ids) + 1)))

    def end(self, item: int, type_: str = "result", reason: str | None = None) -> None:
        round_, epoch = self.conductor.last_attempt(item)
        outcome = AttemptOutcome(item=item, round=round_, type=type_, reason=reason, epoch=epoch)  # type: ignore[arg-type]
        self.hand(OutcomesConcluded([outcome]))

    def stop_requests(self) -> list[Stop]:
        return [action.body for action in self.actions if isinstance(action, MakeRequest)]

    def stopped_tasks(self) -> list[str]:
        return sorted(
            action.task for action in self.actions if isinstance(action, TerminateCommand) and action.why == "stopped"
        )

    def ends(self) -> list[type[CommandAction]]:
        return [type(action) for action in self.actions if isinstance(action, CompleteSession | EndDrained)]


def _restarted_conductor(
    agenda: CommandPlan, epochs: Mapping[int, int], bodies: Iterable[RequestBody], *ended: AttemptOutcome
) -> Conductor:
    """Return the conductor of the next coordinator, which reads the disk."""
    requests = [_request(n, body) for n, body in enumerate(bodies, 1)]
    return Conductor(agenda, concluded=OutcomesConcluded(ended), epochs=epochs, requests=requests)


def test_second_signal_ends_running_commands_without_a_crash() -> None:
    run = _Run(_agenda(A, B))
    run.begin_all()
    run.hand(DrainRequested(), SignalReceived("SIGINT", ends=False))
    assert run.stop_requests() == [Stop(cause="signal", detail="SIGINT", attempts={A: 1, B: 1}, terminates=False)]
    assert run.stopped_tasks() == []
    run.hand(SignalReceived("SIGINT", ends=True))
    assert run.stop_requests()[1:] == [Stop(cause="signal", detail="SIGINT", attempts={A: 1, B: 1})]
    assert run.stopped_tasks() == ["a", "b"]
    run.hand(SignalReceived("SIGINT", ends=True))
    assert len(run.stop_requests()) == 2, "an attempt was named twice"
    run.hand(*(WorkerDied(worker, "it") for worker in run.at.values()))
    assert run.ends() == [EndDrained]
    assert not any(isinstance(action, CommitInterrupted) for action in run.actions)


@pytest.mark.parametrize("if_interrupted", ["restart", "fail", "ask"])
def test_command_ended_by_the_user_restarts_whatever_its_policy(if_interrupted: InterruptedAction) -> None:
    agenda = _agenda(A, policy=TaskPolicy(if_interrupted=if_interrupted, restarts_max=0))
    stops = [Stop(cause="signal", detail="SIGTERM", attempts={A: epoch}) for epoch in range(1, 6)]
    left = _restarted_conductor(agenda, {0: 5}, stops)
    assert left.state(0) is CommandState.READY
    assert left.find_stop(0) == ("signal", "SIGTERM", True)
    accident = _restarted_conductor(agenda, {0: 6}, stops)
    assert accident.find_stop(0) is None
    assert accident.after_interruption(0, 6) == ("fail" if if_interrupted == "restart" else if_interrupted)


@pytest.mark.parametrize(("if_interrupted", "state"), [("restart", "READY"), ("fail", "PENDING"), ("ask", "PENDING")])
def test_command_killed_after_a_signal_restarts_only_by_its_policy(
    if_interrupted: InterruptedAction, state: str
) -> None:
    """After one signal all processes are killed, as when a container stops. The user did not end the command itself."""
    agenda = _agenda(A, policy=TaskPolicy(if_interrupted=if_interrupted, restarts_max=0))
    left = _restarted_conductor(
        agenda, {0: 1}, [Stop(cause="signal", detail="SIGTERM", attempts={A: 1}, terminates=False)]
    )
    assert left.state(0).value == state
    assert (left.find_stop(0) is None) == (if_interrupted != "restart")


def test_only_interruptions_use_up_restarts() -> None:
    agenda = _agenda(A, policy=TaskPolicy(restarts_max=1))
    stop = Stop(cause="signal", detail="SIGINT", attempts={A: 2})
    assert _restarted_conductor(agenda, {0: 3}, [stop]).after_interruption(0, 3) == "fail"
    assert (
        _restarted_conductor(agenda, {0: 3}, [stop, Cancel(attempts={A: 1}), Open()]).after_interruption(0, 3)
        == "restart"
    )


def test_time_limit_ends_running_commands_until_resume() -> None:
    agenda = _agenda(A, B, C, timeout_seconds=60.0)
    run = _Run(agenda)
    assert [action for action in run.actions if isinstance(action, SetTimer)] == [
        SetTimer(BATCH_TIME_LIMIT_ITEM, 0, 60.0)
    ]
    run.begin_all()
    run.end(0)
    run.hand(WaitEnded(BATCH_TIME_LIMIT_ITEM, 0))
    assert run.stop_requests() == [Stop(cause="timeout", attempts={B: 1, C: 1})]
    assert run.stopped_tasks() == ["b", "c"]
    run.end(1)  # The command ended before the stop reached it.
    run.hand(WorkerDied(run.at[1], "nobody"), WorkerDied(run.at[2], "it"), WorkerDied(run.at[0], "it"))
    assert run.ends() == [CompleteSession]
    assert [state.value for state in run.conductor.states()] == ["DONE", "DONE", "PENDING"]
    assert run.conductor.batch_state() is BatchState.PARTIAL
    assert _restarted_conductor(agenda, {0: 1, 1: 1, 2: 1}, run.stop_requests()).state(2) is CommandState.PENDING
    again = _Run(agenda, *run.stop_requests(), Open(), epochs={0: 1, 1: 1, 2: 1})
    assert again.conductor.state(2) is CommandState.READY
    assert SetTimer(BATCH_TIME_LIMIT_ITEM, 0, 60.0) in again.actions, "the time limit was not restarted"


def test_open_request_at_the_time_limit_restarts_the_limit() -> None:
    run = _Run(_agenda(A, timeout_seconds=60.0))
    run.begin_all()
    run.hand(WaitEnded(BATCH_TIME_LIMIT_ITEM, 0))
    run.actions.clear()
    run.hand(RequestRead(_request(2, Open())))
    assert run.actions == [SetTimer(BATCH_TIME_LIMIT_ITEM, 0, 60.0)]


def test_finished_batch_ignores_the_time_limit() -> None:
    run = _Run(_agenda(A, timeout_seconds=60.0))
    run.begin_all()
    run.end(0)
    run.hand(WorkerDied(run.at[0], "it"), WaitEnded(BATCH_TIME_LIMIT_ITEM, 0))
    assert run.stop_requests() == []


def test_first_failure_ends_running_commands_if_halt_is_now() -> None:
    agenda = _agenda(A, B, C, on_failure="stop", halt="now")
    run = _Run(agenda)
    run.begin_all()
    run.end(1, "failed", "exit")
    assert run.stop_requests() == [Stop(cause="failure", detail="b", attempts={A: 1, C: 1})]
    assert run.stopped_tasks() == ["a", "c"]
    run.hand(*(WorkerDied(worker, "it") for worker in run.at.values()))
    assert [state.value for state in run.conductor.states()] == ["PENDING", "FAILED", "PENDING"]
    assert run.conductor.find_stop(0) == ("failure", "b", True)
    failure = AttemptOutcome(item=1, round=1, type="failed", reason="exit", epoch=1)
    bodies: list[RequestBody] = [*run.stop_requests(), Open(rounds={B: 1}, acknowledged={B: 1})]
    left = _restarted_conductor(agenda, {0: 1, 1: 1, 2: 1}, bodies, failure)
    assert {left.state(item) for item in range(3)} == {CommandState.READY}


@pytest.mark.parametrize(("acknowledged", "state"), [({}, "PENDING"), ({B: 1}, "READY")])
def test_failure_that_a_user_has_seen_does_not_stop_others_again(
    acknowledged: dict[CommandId, int], state: str
) -> None:
    failure = AttemptOutcome(item=1, round=1, type="failed", reason="exit", epoch=1)
    opened = Open(rounds={}, acknowledged=acknowledged)
    conductor = _restarted_conductor(_agenda(A, B, on_failure="stop"), {1: 1}, [opened], failure)
    assert [state.value for state in conductor.states()] == [state, "FAILED"]


@pytest.mark.parametrize("settings", [{"halt": "soon"}, {"halt": "now", "failures_max": 2}])
def test_running_commands_continue_if_the_failure_does_not_halt(settings: dict[str, Any]) -> None:
    run = _Run(_agenda(A, B, C, on_failure="stop", **settings))
    run.begin_all()
    run.end(1, "failed", "exit")
    assert run.stop_requests() == []


def test_workers_that_end_with_stopped_commands_are_not_deaths() -> None:
    ids = tuple(CommandId(f"c{number}") for number in range(DEATHS_IN_A_ROW_MAX + 1))
    run = _Run(_agenda(*ids, timeout_seconds=60.0))
    run.begin_all()
    run.hand(WaitEnded(BATCH_TIME_LIMIT_ITEM, 0))
    run.hand(*(WorkerDied(worker, "it") for worker in run.at.values()))
    assert run.ends() == [CompleteSession]
