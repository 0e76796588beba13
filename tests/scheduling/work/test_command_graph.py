"""The commands that may start: incremental updates of the graph give the same result as a full computation."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codebatch.model.work.command import CommandId
from codebatch.model.work.work_batch import Work, WorkEdge
from codebatch.scheduling.work.command_graph import CommandGraph, DependencyState
from codebatch.scheduling.work.command_plan import CommandNeed, make_command_plan
from tests.support.resources import cpu_time_below

STATES: tuple[DependencyState, ...] = ("open", "runs", "good", "bad", "held")


@st.composite
def _changes(draw: st.DrawFn) -> tuple[list[list[CommandNeed]], list[tuple[int, DependencyState]]]:
    count = draw(st.integers(1, 8))
    needs = [
        [CommandNeed(need, draw(st.booleans())) for need in range(item) if draw(st.booleans())] for item in range(count)
    ]
    changes = draw(st.lists(st.tuples(st.integers(0, count - 1), st.sampled_from(STATES)), max_size=20))
    return needs, changes


def _reference(needs: list[list[CommandNeed]], own: list[DependencyState], *, goes_on: bool) -> list[tuple[bool, bool]]:
    """Return for each item whether it may start and whether it is skipped, in the order of the graph."""
    states: list[DependencyState] = []
    expected: list[tuple[bool, bool]] = []
    for item, own_needs in enumerate(needs):
        is_spoilt = any(need.must_succeed and states[need.item] == "bad" for need in own_needs) and not goes_on
        is_skipped = own[item] == "open" and is_spoilt
        states.append("bad" if is_skipped else own[item])
        is_met = all(
            states[need.item] == "good" or (states[need.item] == "bad" and (goes_on or not need.must_succeed))
            for need in own_needs
        )
        expected.append((own[item] == "open" and is_met, is_skipped))
    return expected


@given(_changes(), st.booleans())
def test_incremental_changes_match_a_full_computation(
    drawn: tuple[list[list[CommandNeed]], list[tuple[int, DependencyState]]], goes_on: bool
) -> None:
    needs, changes = drawn
    graph = CommandGraph(needs, goes_on=goes_on)
    own: list[DependencyState] = ["open"] * len(needs)
    before = _reference(needs, own, goes_on=goes_on)
    for item, state in changes:
        touched = graph.set(item, state)
        own[item] = state
        after = _reference(needs, own, goes_on=goes_on)
        assert after == [(graph.may_start(other), graph.is_skipped(other)) for other in range(len(needs))]
        assert {other for other in range(len(needs)) if before[other] != after[other]} <= touched
        for other, (_, is_skipped) in enumerate(after):
            cause = graph.skip_cause(other)
            assert (cause != other) == is_skipped
            assert not is_skipped or own[cause] == "bad"
        before = after


def test_failure_propagates_along_a_chain_without_recursion() -> None:
    count = 50_000
    graph = CommandGraph([[CommandNeed(item - 1, True)] if item else [] for item in range(count)])
    assert len(graph.set(0, "bad")) == count
    assert graph.is_skipped(count - 1)
    assert graph.skip_cause(count - 1) == 0
    graph.set(0, "open")
    assert not graph.is_skipped(count - 1)


def test_chain_of_diamonds_is_walked_once() -> None:
    """The chain has 2 ** 60 paths."""
    needs: list[list[CommandNeed]] = [[]]
    for rung in range(60):
        top = 3 * rung
        needs += [
            [CommandNeed(top, True)],
            [CommandNeed(top, True)],
            [CommandNeed(top + 1, True), CommandNeed(top + 2, True)],
        ]
    graph = CommandGraph(needs)
    with cpu_time_below(5):
        graph.set(0, "bad")
        assert graph.is_skipped(len(needs) - 1)


def _work(*edges: tuple[str, str], strategy: str = "parallel") -> Work:
    ids = sorted({id_ for edge in edges for id_ in edge})
    return Work(
        source="test",
        root=b"/",
        order=tuple(map(CommandId, ids)),
        edges=tuple(WorkEdge(CommandId(task), CommandId(on)) for task, on in edges),
        strategy="serial" if strategy == "serial" else "parallel",
        max_parallel=4,
    )


def test_command_with_most_dependents_is_first_and_serial_order_is_file_order() -> None:
    edges = (("b2", "b1"), ("b3", "b2"), ("c2", "c1"), ("a1", "c2"))
    parallel = make_command_plan(_work(*edges), ["a1", "b1", "b2", "b3", "c1", "c2"])  # type: ignore[list-item]
    first = sorted(range(6), key=lambda item: parallel.sort_keys[item])
    assert [parallel.ids[item] for item in first] == ["b1", "c1", "b2", "c2", "a1", "b3"]
    serial = make_command_plan(_work(*edges, strategy="serial"), parallel.ids)
    assert sorted(range(6), key=lambda item: serial.sort_keys[item]) == list(range(6))
    assert serial.capacity == {"": 1}


def test_running_command_is_unaffected_by_a_reopened_need() -> None:
    """A need is reopened and fails while its dependent runs. Later commands wait for the end of the dependent."""
    graph = CommandGraph([[], [CommandNeed(0, must_succeed=True)], [CommandNeed(1, must_succeed=False)]])
    graph.set(0, "good")
    graph.set(1, "runs")
    graph.set(0, "bad")
    assert not graph.may_start(2)
    graph.set(1, "good")
    assert graph.may_start(2)


def test_cyclic_needs_from_a_foreign_store_never_start() -> None:
    agenda = make_command_plan(_work(("a", "b"), ("b", "a")), [CommandId("a"), CommandId("b")])
    graph = CommandGraph(agenda.needs)
    assert not graph.may_start(0)
    assert not graph.may_start(1)


A = CommandId("a")
