"""The makespan of a command plan: between a lower bound of all schedules and Graham's upper bound."""

from __future__ import annotations

from itertools import pairwise

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from codebatch.model.work.command import CommandId
from codebatch.model.work.work_batch import TaskPolicy, Work, WorkEdge
from codebatch.scheduling.work.command_plan import SLOTS_POOL, CommandPlan, make_command_plan
from codebatch.scheduling.work.makespan import critical_path, estimate_makespan, schedule_items


def agenda(
    needs: list[list[int]], slots: int, pools: dict[str, int] | None = None, taken: dict[int, TaskPolicy] | None = None
) -> CommandPlan:
    ids = tuple(CommandId(f"t{n}") for n in range(len(needs)))
    edges = tuple(WorkEdge(ids[task], ids[on]) for task, on_ in enumerate(needs) for on in on_)
    policies = {ids[task]: policy for task, policy in (taken or {}).items()}
    work = Work(
        source="", root=b"/", order=ids, edges=edges, policies=policies, strategy="auto", max_parallel=slots,
        pools=pools or {},
    )  # fmt: skip
    return make_command_plan(work, ids)


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[list[int]], list[float], int]:
    count = draw(st.integers(1, 12))
    needs = [draw(st.lists(st.integers(0, n - 1), unique=True, max_size=3)) if n else [] for n in range(count)]
    seconds = draw(st.lists(st.integers(1, 20).map(float), min_size=count, max_size=count))
    return needs, seconds, draw(st.integers(1, 4))


@settings(max_examples=200, deadline=None)
@given(problems())
def test_makespan_is_within_grahams_bound(problem: tuple[list[list[int]], list[float], int]) -> None:
    needs, seconds, slots = problem
    plan = agenda(needs, slots)
    schedule = sorted(schedule_items(plan, dict(enumerate(seconds))))
    path = critical_path(plan, seconds)
    least = max(sum(seconds[item] for item in path), sum(seconds) / slots)
    assert least - 1e-9 <= max(command.end for command in schedule) <= (2 - 1 / slots) * least + 1e-9
    assert all(need in needs[dependent] for need, dependent in pairwise(path))
    for task, on_ in enumerate(needs):
        assert all(schedule[on].end <= schedule[task].start for on in on_)
    for command in schedule:
        concurrent = [other for other in schedule if other.start <= command.start < other.end]
        assert len({other.slot for other in concurrent}) == len(concurrent) <= slots
    assert estimate_makespan(plan, seconds, {SLOTS_POOL: len(needs)}) == sum(seconds[item] for item in path)


def test_schedule_respects_pools_and_exclusive_tasks() -> None:
    taken = {0: TaskPolicy(pools={"db": 1}), 1: TaskPolicy(pools={"db": 1}), 3: TaskPolicy(exclusive=True)}
    plan = agenda([[], [], [], []], 3, {"db": 1}, taken)
    seconds = [2.0, 2.0, 1.0, 1.0]
    assert [command.start for command in sorted(schedule_items(plan, dict(enumerate(seconds))))] == [0.0, 2.0, 0.0, 4.0]
    assert estimate_makespan(plan, seconds, {**plan.capacity, "db": 2}) == 3.0
    assert estimate_makespan(plan, [1.0] * 4, {SLOTS_POOL: 1, "db": 1}) == 4.0
    left = schedule_items(plan, {0: 2.0, 1: 2.0}, running=(0,))
    assert [(command.item, command.start) for command in left] == [(0, 0.0), (1, 2.0)]


def test_task_that_waits_for_a_whole_pool_lets_no_later_task_take_it() -> None:
    taken = {task: TaskPolicy(pools={"db": tokens}) for task, tokens in enumerate((1, 2, 1))}
    schedule = schedule_items(agenda([[], [], []], 3, {"db": 2}, taken), {0: 2.0, 1: 2.0, 2: 2.0})
    assert [(command.item, command.start) for command in sorted(schedule)] == [(0, 0.0), (1, 2.0), (2, 4.0)]


def test_schedule_respects_the_start_interval() -> None:
    plan = msgspec.structs.replace(agenda([[], [], [], [0]], 3), start_every_seconds=2.0)
    starts = {command.item: command.start for command in schedule_items(plan, {0: 1.0, 1: 9.0, 2: 1.0, 3: 1.0})}
    assert starts == {0: 0.0, 1: 2.0, 2: 4.0, 3: 6.0}
    assert [command.start for command in schedule_items(plan, {0: 7.0, 3: 1.0})] == [0.0, 7.0]
