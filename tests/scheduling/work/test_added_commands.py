"""Commands that requests add to a batch: while it runs, they get the states that a later reader derives."""

from __future__ import annotations

import random

import pytest

from codebatch.model.work.command import Command, CommandId
from codebatch.model.work.request import Add, Request, RequestHead, Set
from codebatch.model.work.work_batch import TaskPolicy, Work, WorkEdge
from codebatch.scheduling.events import SessionStarted, WorkerId, WorkerIdle
from codebatch.scheduling.lifecycle import CommandState
from codebatch.scheduling.work.command_plan import make_command_plan
from codebatch.scheduling.work.conductor import Conductor
from codebatch.scheduling.work.event_projection import EventProjector
from codebatch.scheduling.work.events import AttemptOutcome, OutcomesConcluded, RequestRead, StartCommand

A, B, C, D = map(CommandId, "abcd")


def _work(ids: str, *needs: str, policies: dict[CommandId, TaskPolicy] | None = None) -> Work:
    return Work(
        source="test", root=b"/", order=tuple(map(CommandId, ids)), strategy="parallel", max_parallel=2,
        edges=tuple(WorkEdge(CommandId(pair[0]), CommandId(pair[1])) for pair in needs), policies=policies or {},
    )  # fmt: skip


def _request(n: int, body: Add | Set) -> Request:
    return Request(RequestHead(n=n, at_ns=0, by="test"), body)


def _add(ids: str, *needs: str, policies: dict[CommandId, TaskPolicy] | None = None) -> Add:
    edges = tuple(WorkEdge(CommandId(pair[0]), CommandId(pair[1])) for pair in needs)
    commands = tuple(Command(id=CommandId(id_), run="true") for id_ in ids)
    return Add(commands=commands, edges=edges, policies=policies or {})


def _outcome(item: int, type_: str = "result") -> OutcomesConcluded:
    return OutcomesConcluded([AttemptOutcome(item=item, round=1, type=type_, reason="exit", epoch=1)])  # type: ignore[arg-type]


def _conductor(work: Work, *requests: Request, done: tuple[int, ...] = ()) -> Conductor:
    concluded = OutcomesConcluded([one for item in done for one in _outcome(item).conclusions])
    agenda = make_command_plan(work, list(work.order))
    return Conductor(agenda, concluded=concluded, epochs=dict.fromkeys(done, 1), requests=requests)


@pytest.mark.parametrize("seed", range(200))
def test_added_commands_get_the_states_that_a_later_reader_derives(seed: int) -> None:
    rng = random.Random(seed)
    ids = "abcdefgh"[: rng.randint(2, 8)]
    needs = [user + need for at, user in enumerate(ids) for need in ids[:at] if rng.random() < 0.4]
    cuts = sorted(rng.sample(range(1, len(ids)), rng.randint(1, min(2, len(ids) - 1))))
    parts = [ids[first:end] for first, end in zip(cuts, [*cuts[1:], len(ids)], strict=True)]
    first = ids[: cuts[0]]
    live = _conductor(_work(first, *(pair for pair in needs if pair[0] in first)))
    projector = EventProjector(live)
    projector.initial_events(OutcomesConcluded([]))
    outcomes: list[AttemptOutcome] = []
    requests: list[Request] = []
    for part in [*parts, ""]:
        for item in rng.sample(range(len(live.agenda.ids)), rng.randint(0, len(live.agenda.ids))):
            if live.state(item) is CommandState.READY:
                event = _outcome(item, rng.choice(("result", "failed")))
                outcomes += event.conclusions
                live.handle(event)
                projector.effects_of_event(event)
        if part:
            requests.append(_request(len(requests) + 1, _add(part, *(pair for pair in needs if pair[0] in part))))
            live.handle(RequestRead(requests[-1]))
            projector.effects_of_event(RequestRead(requests[-1]))
    later = Conductor(
        make_command_plan(_work(ids, *needs), list(map(CommandId, ids))),
        concluded=OutcomesConcluded(outcomes), epochs={one.item: 1 for one in outcomes}, requests=requests,
    )  # fmt: skip
    assert live.states() == later.states()
    assert live.agenda.needs == later.agenda.needs
    assert live.agenda.sort_keys == later.agenda.sort_keys
    states = [state.value for state in live.states()]
    assert projector.counts == {state: states.count(state) for state in states}


def test_added_command_starts_at_once_if_its_needs_are_met() -> None:
    conductor = _conductor(_work("ab"), done=(0,))
    events = (
        SessionStarted(), WorkerIdle(WorkerId(1)), WorkerIdle(WorkerId(2)),
        RequestRead(_request(1, _add("cd", "ca", "db"))),
    )  # fmt: skip
    starts = [[one.item for one in conductor.handle(event) if isinstance(one, StartCommand)] for event in events]
    assert starts == [[], [1], [], [2]]


def test_added_command_has_its_policy_and_later_requests_apply_to_it() -> None:
    request = _request(1, _add("c", policies={C: TaskPolicy(attempts_max=1, priority=3)}))
    set_ = _request(2, Set(tasks={}, max_parallel=5))
    conductor = _conductor(_work("ab"), request, set_)
    assert (conductor.agenda.ids, conductor.priority(2), conductor.capacity[""]) == ([A, B, C], 3, 5)
    conductor.handle(_outcome(2, "failed"))
    assert [cap.scope for cap in conductor.met_caps()] == []
    assert conductor.has_caps


def test_request_that_the_plan_contains_is_not_applied_again() -> None:
    conductor = _conductor(_work("abc"), _request(1, _add("c")))
    assert conductor.agenda.ids == [A, B, C]
