"""Forecasts of the remaining time: the range contains the true duration, and its middle is near it."""

from __future__ import annotations

import heapq
import random
import statistics
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from codebatch.model.work.command import CommandId
from codebatch.model.work.work_batch import TaskPolicy, Work, WorkEdge
from codebatch.scheduling.work.command_plan import CommandPlan, longest_paths, make_command_plan
from codebatch.scheduling.work.estimate import Eta, RemainingWork, forecast_remaining
from codebatch.scheduling.work.makespan import ScheduledItem, schedule_items

GRAPHS = 120
RUNS = 8
SAMPLES = 8
KNOWN_RUNS = 4


def agenda_for(needs: list[list[int]], slots: int, *, exclusive: tuple[int, ...] = ()) -> CommandPlan:
    ids = [CommandId(f"t{item:03}") for item in range(len(needs))]
    work = Work(
        source="test",
        root=b"/",
        order=tuple(ids),
        edges=tuple(WorkEdge(ids[item], ids[need]) for item, each in enumerate(needs) for need in each),
        policies={ids[item]: TaskPolicy(exclusive=True) for item in exclusive},
        strategy="parallel",
        max_parallel=slots,
    )
    return make_command_plan(work, ids)


@dataclass
class Machine:
    """A batch that runs repeatedly, on a machine that is slow or fast for a whole run. `seen` are known durations."""

    random: random.Random
    agenda: CommandPlan
    means: list[float]
    seen: dict[int, deque[float]] = field(default_factory=dict)

    def run(self) -> tuple[dict[int, float], list[ScheduledItem]]:
        """Run all tasks. Return the duration of each task, and their schedule."""
        slow = self.random.lognormvariate(0.0, 0.12)
        lengths = {item: mean * slow * self.random.lognormvariate(0.0, 0.15) for item, mean in enumerate(self.means)}
        return lengths, schedule_items(self.agenda, lengths)

    def learn(self, lengths: dict[int, float]) -> None:
        """Keep the durations of a run as samples."""
        for item, seconds in lengths.items():
            self.seen.setdefault(item, deque(maxlen=SAMPLES)).append(seconds)

    def at_half(self, placed: list[ScheduledItem]) -> tuple[float, Eta | None]:
        """Return the remaining time after half of a run, and its forecast."""
        total = max(task.end for task in placed)
        now = total / 2
        ended = [task for task in placed if task.end <= now]
        left = RemainingWork(
            waiting=[task.item for task in placed if task.start >= now],
            running={task.item: now - task.start for task in placed if task.start < now < task.end},
            samples={item: tuple(seconds) for item, seconds in self.seen.items()},
            ratios=[(task.end - task.start) / statistics.median(self.seen[task.item]) for task in ended],
        )
        return total - now, forecast_remaining(self.agenda, left)


def random_machine(seed: int) -> Machine:
    chance = random.Random(seed)
    count = chance.randint(10, 80)
    needs = [chance.sample(range(item), min(item, chance.choice((0, 0, 1, 2, 3)))) for item in range(count)]
    means = [chance.lognormvariate(3.0, 0.8) for _ in range(count)]
    return Machine(chance, agenda_for(needs, chance.choice((1, 2, 4, 8))), means)


def test_forecast_range_after_five_runs_contains_the_true_duration() -> None:
    """The range contains it in at least 80 % of cases, and the median error of the middle is at most 15 %."""
    inside, errors, widths = [], [], []
    for seed in range(GRAPHS):
        machine = random_machine(seed)
        for run in range(RUNS):
            lengths, placed = machine.run()
            if run >= KNOWN_RUNS:
                truth, forecast = machine.at_half(placed)
                assert forecast is not None
                inside.append(forecast.seconds[0] <= truth <= forecast.seconds[2])
                errors.append(abs(forecast.seconds[1] - truth) / truth)
                widths.append((forecast.seconds[2] - forecast.seconds[0]) / truth)
            machine.learn(lengths)
    share, error = sum(inside) / len(inside), statistics.median(errors)
    print(f"inside {share:.1%}, median error {error:.1%}, median width {statistics.median(widths):.0%} of the truth")
    assert share >= 0.8
    assert error <= 0.15
    assert statistics.median(widths) < 0.6, "the ranges are too wide to be useful"


def test_single_sample_gives_a_range_and_zero_samples_no_forecast() -> None:
    agenda = agenda_for([[]], 1)
    forecast = forecast_remaining(agenda, RemainingWork(waiting=[0], running={}, samples={0: (100.0,)}))
    assert forecast is not None
    assert forecast.seconds[0] <= 85
    assert 95 <= forecast.seconds[1] <= 105
    assert forecast.seconds[2] >= 115
    assert forecast_remaining(agenda, RemainingWork(waiting=[0], running={}, samples={})) is None
    assert forecast_remaining(agenda, RemainingWork(waiting=[], running={}, samples={})) == Eta((0, 0, 0))


def test_forecast_counts_commands_without_samples() -> None:
    forecast = forecast_remaining(
        agenda_for([[], []], 1), RemainingWork(waiting=[0, 1], running={}, samples={0: (10.0,)})
    )
    assert forecast is not None
    assert forecast.unknown == 1


def test_forecast_accounts_for_late_commands_and_slow_machines() -> None:
    agenda = agenda_for([[], []], 1)
    late = forecast_remaining(agenda, RemainingWork(waiting=[], running={0: 100.0}, samples={0: (10.0, 11.0, 12.0)}))
    assert late is not None
    assert late.seconds[1] == pytest.approx(30.0)
    slow = forecast_remaining(
        agenda, RemainingWork(waiting=[0], running={}, samples={0: (10.0,) * 8}, ratios=[2.0] * 30)
    )
    assert slow is not None
    assert slow.seconds[1] == pytest.approx(20.0, rel=0.1)


@given(
    st.lists(st.lists(st.integers(0, 40), max_size=3), min_size=1, max_size=40),
    st.lists(st.floats(0.1, 100), min_size=40, max_size=40),
    st.integers(1, 6),
)
def test_schedule_is_within_its_theoretical_bounds(needs: list[list[int]], lengths: list[float], slots: int) -> None:
    """The lower bounds are the longest path and the work per slot. Graham's bound (1966) is their sum."""
    acyclic = [sorted({need for need in drawn if need < item}) for item, drawn in enumerate(needs)]
    agenda = agenda_for(acyclic, slots)
    lengths_by_item = dict(enumerate(lengths[: len(needs)]))
    placed = {task.item: task for task in schedule_items(agenda, lengths_by_item)}
    assert placed.keys() == lengths_by_item.keys()
    makespan = max(task.end for task in placed.values())
    path, work = max(longest_paths(agenda.needs, lengths_by_item).values()), sum(lengths_by_item.values()) / slots
    assert max(path, work) <= makespan * (1 + 1e-9)
    assert makespan <= (path + work) * (1 + 1e-9)
    for item, item_needs in enumerate(acyclic):
        assert all(placed[need].end <= placed[item].start + 1e-9 for need in item_needs)
    for task in placed.values():
        concurrent = [other for other in placed.values() if other.start <= task.start < other.end]
        assert len(concurrent) <= slots
        assert len({other.slot for other in concurrent}) == len(concurrent)


def test_an_exclusive_task_is_alone_in_a_schedule() -> None:
    agenda = agenda_for([[], [], []], 2, exclusive=(1,))
    placed = {task.item: task for task in schedule_items(agenda, {0: 3.0, 1: 2.0, 2: 5.0})}
    alone = placed[1]
    assert all(task.end <= alone.start or task.start >= alone.end for item, task in placed.items() if item != 1)


def test_forecast_of_many_tasks_needs_no_schedule() -> None:
    agenda = agenda_for([[] for _ in range(20_001)], 4)
    forecast = forecast_remaining(
        agenda, RemainingWork(waiting=range(20_001), running={}, samples=dict.fromkeys(range(20_001), (4.0,)))
    )
    assert forecast is not None
    assert forecast.seconds[1] == pytest.approx(20_001, rel=0.1)


def test_tasks_that_wait_for_a_full_pool_are_not_rescanned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = [CommandId(f"t{item:03}") for item in range(200)]
    policies = dict.fromkeys(ids, TaskPolicy(pools={"agents": 1}))
    work = Work(source="test", root=b"/", order=tuple(ids), edges=(), policies=policies, pools={"agents": 2})
    agenda = make_command_plan(structs.replace(work, strategy="parallel", max_parallel=8), ids)
    popped_entries: list[Any] = []
    pop = heapq.heappop

    def counted(heap: list[Any]) -> Any:
        popped_entries.append(pop(heap))
        return popped_entries[-1]

    monkeypatch.setattr(heapq, "heappop", counted)
    placed = schedule_items(agenda, dict.fromkeys(range(200), 1.0))
    assert max(task.end for task in placed) == 100
    assert len(popped_entries) < 5 * 200
