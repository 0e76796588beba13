"""The changes with which the tree of an isolated command starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given
from msgspec import UNSET

from codebatch.coordinator.work.attempt_context import make_assign
from codebatch.model.digest import Digest
from codebatch.model.outcome import OutcomeType
from codebatch.model.record import CommandReason
from codebatch.model.shard import Shard, ShardId
from codebatch.model.work.command import CommandId
from codebatch.model.work.request import Answer, Open, Request, RequestBody, RequestHead, Skip
from codebatch.model.work.trees import NeededChanges, TreeInput
from codebatch.model.work.work_batch import FailureAction, TaskPolicy, TaskSuccess, Work, WorkEdge
from codebatch.scheduling.events import WorkerId
from codebatch.scheduling.work.command_plan import make_command_plan
from codebatch.scheduling.work.conductor import Conductor
from codebatch.scheduling.work.events import AttemptOutcome, OutcomesConcluded, StartCommand
from codebatch.scheduling.work.tree_inputs import kept_trees, make_tree_input, needed_items, needed_outputs
from codebatch.store.work.attempts import CommandPlaces

A, B, C, D = (CommandId(name) for name in "abcd")
ASKED = Digest("a" * 64)
ALL = (A, B, C, D)


def set_of(command: str, round_: int) -> Digest:
    """Return the digest of the change set of an attempt."""
    return Digest(f"{ord(command):x}{round_:062x}")


def ended(
    command: CommandId,
    round_: int = 1,
    type_: OutcomeType = "result",
    reason: CommandReason | None = None,
    *,
    asked: bool = False,
    changes: bool = True,
) -> AttemptOutcome:
    return AttemptOutcome(
        item=ALL.index(command),
        round=round_,
        epoch=round_,
        type=type_,
        reason=reason,
        question=ASKED if asked else Digest(""),
        changes=set_of(command, round_) if changes else Digest(""),
    )


def conduct(
    edges: Sequence[tuple[CommandId, CommandId] | WorkEdge],
    outcomes: Sequence[AttemptOutcome],
    bodies: Sequence[RequestBody] = (),
    order: Sequence[CommandId] = ALL,
    on_failure: FailureAction = "skip-dependents",
    policies: Mapping[CommandId, TaskPolicy] | None = None,
    successes: Mapping[CommandId, TaskSuccess] | None = None,
) -> Conductor:
    work = Work(
        source="test",
        root=b"/",
        order=tuple(order),
        edges=tuple(edge if isinstance(edge, WorkEdge) else WorkEdge(*edge) for edge in edges),
        on_failure=on_failure,
        policies={**(policies or {})},
        successes={**successes} if successes else UNSET,
    )
    requests = [Request(RequestHead(n=n, at_ns=0, by="test"), body) for n, body in enumerate(bodies, start=1)]
    return Conductor(
        make_command_plan(work, ALL), concluded=OutcomesConcluded(tuple(outcomes)), epochs={}, requests=requests
    )


def needed(*attempts: tuple[CommandId, int]) -> tuple[NeededChanges, ...]:
    return tuple(NeededChanges(task=command, changes=set_of(command, round_)) for command, round_ in attempts)


def test_tree_has_the_changes_of_all_needed_tasks() -> None:
    conductor = conduct([(D, C), (C, B), (D, A)], [ended(A), ended(B), ended(C)])
    assert make_tree_input(conductor, 3) == TreeInput(needed=needed((A, 1), (B, 1), (C, 1)))
    assert make_tree_input(conductor, 2) == TreeInput(needed=needed((B, 1)))
    assert make_tree_input(conductor, 0) == TreeInput()


def test_only_isolated_commands_get_the_input_of_a_tree() -> None:
    conductor = conduct([(B, A)], [ended(A)])
    start = StartCommand(worker=WorkerId(1), item=1, round=1, epoch=1, requests=0, failed_tries=0)
    places = CommandPlaces([Shard(id=ShardId("0" * 8), start=0, end=4, bytes=0)])
    isolated = make_assign(conductor, start, places, lambda _: True)
    assert isolated.brief.tree == TreeInput(needed=needed((A, 1)))
    assert make_assign(conductor, start, places, lambda _: False).brief.tree is None


def test_needed_tasks_come_first_and_then_the_order_of_the_list() -> None:
    conductor = conduct([(D, A), (D, B), (D, C), (A, C)], [], order=(B, A, D, C))
    assert [ALL[item] for item in needed_items(conductor, 3)] == [B, C, A]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(lambda pair: pair[0] > pair[1])),
    st.permutations(ALL),
)
def test_each_needed_task_comes_once_and_after_its_own_needs(
    pairs: list[tuple[int, int]], order: list[CommandId]
) -> None:
    conductor = conduct([(ALL[task], ALL[on]) for task, on in pairs], [], order=order)
    items = needed_items(conductor, 3)
    reached = {3}
    for _ in ALL:
        reached |= {on for task, on in pairs if task in reached}
    assert sorted(items) == sorted(reached - {3})
    assert all(items.index(on) < items.index(task) for task, on in pairs if task in items)


def test_tasks_that_only_have_to_end_first_do_not_change_the_tree() -> None:
    conductor = conduct([WorkEdge(B, A, "after")], [ended(A)])
    assert make_tree_input(conductor, 1) == TreeInput()


def test_task_without_a_change_set_is_left_out() -> None:
    conductor = conduct([(C, B), (B, A)], [ended(A), ended(B, changes=False)])
    assert make_tree_input(conductor, 2).needed == needed((A, 1))


_MARKED = Skip(task=A, round=2, marked_done=True)


@pytest.mark.parametrize(
    ("outcomes", "bodies", "expected"),
    [
        ([ended(A), ended(A, 2)], [Open(rounds={A: 1})], [(A, 2)]),
        ([ended(A, 1, "failed", "exit"), ended(A, 2)], [Open(rounds={A: 1})], [(A, 2)]),
        ([ended(A, 1, "failed", "exit")], [], []),
        ([ended(A), ended(A, 2, "failed", "exit")], [Open(rounds={A: 1})], []),
        ([ended(A), ended(A, 2, "failed", "exit")], [Open(rounds={A: 1}), _MARKED], [(A, 1)]),
        ([ended(A, 1, "failed", "exit")], [Skip(task=A, round=1, marked_done=True)], []),
    ],
)  # fmt: skip
def test_changes_are_those_of_the_last_success_of_a_done_task(
    outcomes: list[AttemptOutcome], bodies: list[RequestBody], expected: list[tuple[CommandId, int]]
) -> None:
    conductor = conduct([(B, A)], outcomes, bodies, on_failure="continue")
    assert make_tree_input(conductor, 1).needed == needed(*expected)


_ANSWER = Answer(task=A, round=1, question=ASKED, text="yes")
_ROUNDS: Mapping[str, tuple[list[AttemptOutcome], list[RequestBody], TreeInput]] = {
    "never began": ([], [], TreeInput()),
    "answered": ([ended(A, 1, "blocked", asked=True)], [_ANSWER], TreeInput(continued_round=1)),
    "not answered": ([ended(A, 1, "blocked", asked=True)], [Open(rounds={A: 1})], TreeInput(previous_round=1)),
    "another round answered": (
        [ended(A, 1, "failed", "exit"), ended(A, 2, "blocked", asked=True)], [_ANSWER], TreeInput(previous_round=2),
    ),
    "asked twice": (
        [ended(A, 1, "blocked", asked=True), ended(A, 2, "blocked", asked=True)],
        [_ANSWER, Answer(task=A, round=2, question=ASKED, text="no")], TreeInput(continued_round=2),
    ),
    "interrupted": ([ended(A, 1, "blocked", "interrupted")], [Open(rounds={A: 1})], TreeInput(previous_round=1)),
    "failed": ([ended(A, 1, "failed", "exit")], [Open(rounds={A: 1})], TreeInput(previous_round=1)),
    "failed after an answer": (
        [ended(A, 1, "blocked", asked=True), ended(A, 2, "failed", "exit")],
        [_ANSWER, Open(rounds={A: 2})], TreeInput(previous_round=2),
    ),
    "refused after an answer": (
        [ended(A, 1, "blocked", asked=True), ended(A, 2, "cancelled", "unbegun")],
        [_ANSWER], TreeInput(continued_round=1),
    ),
    "cancelled": ([ended(A, 1, "cancelled")], [Open(rounds={A: 1})], TreeInput()),
    "done": ([ended(A)], [Open(rounds={A: 1})], TreeInput()),
}  # fmt: skip


@pytest.mark.parametrize("name", _ROUNDS)
def test_earlier_tree_follows_from_the_last_attempt(name: str) -> None:
    outcomes, bodies, expected = _ROUNDS[name]
    assert make_tree_input(conduct([], outcomes, bodies), 0) == expected


@pytest.mark.parametrize(("reason", "state"), [("exit", "WAITING"), ("conflict", "FAILED")])
def test_conflict_is_never_retried(reason: CommandReason, state: str) -> None:
    work = Work(source="test", root=b"/", order=(A,), policies={A: TaskPolicy(retries=3)})
    concluded = OutcomesConcluded((ended(A, 1, "failed", reason),))
    conductor = Conductor(make_command_plan(work, [A]), concluded=concluded, epochs={})
    assert conductor.state(0).value == state


def test_tree_of_the_last_failure_is_kept() -> None:
    failed = [ended(A, 1, "failed", "exit"), ended(A, 2), ended(A, 3, "failed", "exit"), ended(A, 4, "blocked")]
    conductor = conduct([], [*failed, ended(B, 1, "failed", "exit"), ended(B, 2), ended(C, 1, "cancelled")])
    assert kept_trees(conductor) == [("a", 4)]


@pytest.mark.parametrize(("unrecorded", "expected"), [(0, []), (2, [("a", 2)])])
def test_tree_of_a_success_is_kept_if_work_is_not_recorded(unrecorded: int, expected: list[tuple[str, int]]) -> None:
    last = msgspec.structs.replace(ended(A, 2), unrecorded=unrecorded)
    assert kept_trees(conduct([], [msgspec.structs.replace(ended(A, 1), unrecorded=1), last])) == expected


E = CommandId("e")
USES_ALL = {D: TaskPolicy(outputs_of=(A, B, C, E))}


def _with_outputs(outcome: AttemptOutcome) -> AttemptOutcome:
    return msgspec.structs.replace(outcome, outputs=set_of(ALL[outcome.item], outcome.round))


def test_outputs_are_those_of_the_last_success_of_done_tasks() -> None:
    outcomes = [_with_outputs(ended(A, 1)), _with_outputs(ended(A, 2)), _with_outputs(ended(B)), ended(B, 2, "failed")]
    successes = {E: TaskSuccess(batch="e", outputs=set_of(E, 1)), B: TaskSuccess(batch="b", outputs=set_of(B, 9))}
    conductor = conduct([(D, C), (C, A), (C, B)], [*outcomes, ended(C)], policies=USES_ALL, successes=successes)
    assert needed_outputs(conductor, 3) == {A: set_of(A, 2), E: set_of(E, 1)}
    assert needed_outputs(conductor, 2) == {}


def test_earlier_success_counts_only_before_the_first_attempt_of_the_batch() -> None:
    success = TaskSuccess(batch="b", inputs=set_of(A, 1))
    places = CommandPlaces([Shard(id=ShardId("0" * 8), start=0, end=4, bytes=0)])
    for outcomes, expected in (([], success), ([ended(A, 1, "failed")], None), ([ended(A, 1)], None)):
        conductor = conduct([], outcomes, successes={A: success})
        start = StartCommand(worker=WorkerId(1), item=0, round=2, epoch=2, requests=0, failed_tries=0)
        assert make_assign(conductor, start, places, lambda _: False).brief.success == expected
