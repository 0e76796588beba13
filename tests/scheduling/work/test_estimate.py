"""How long a batch takes yet: the range that is told holds the truth, and its middle is near it."""

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
from codebatch.scheduling.work.command_plan import CommandPlan, make_command_plan
from codebatch.scheduling.work.estimate import Forecast, RemainingWork, forecast_remaining, longest_paths
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
    """A batch that is run again and again: what each of its tasks took, on a machine that is slow or fast for a run."""

    random: random.Random
    agenda: CommandPlan
    means: list[float]
    seen: dict[int, deque[float]] = field(default_factory=dict)

    def run(self) -> tuple[dict[int, float], list[ScheduledItem]]:
        """A run of all: the seconds of each, and when it was."""
        slow = self.random.lognormvariate(0.0, 0.12)
        lengths = {item: mean * slow * self.random.lognormvariate(0.0, 0.15) for item, mean in enumerate(self.means)}
        return lengths, schedule_items(self.agenda, lengths)

    def learn(self, lengths: dict[int, float]) -> None:
        """What somebody keeps of a run."""
        for item, seconds in lengths.items():
            self.seen.setdefault(item, deque(maxlen=SAMPLES)).append(seconds)

    def at_half(self, placed: list[ScheduledItem]) -> tuple[float, Forecast | None]:
        """At half of a run, how long it takes yet, and what is told."""
        total = max(one.end for one in placed)
        now = total / 2
        ended = [one for one in placed if one.end <= now]
        left = RemainingWork(
            waiting=[one.item for one in placed if one.start >= now],
            running={one.item: now - one.start for one in placed if one.start < now < one.end},
            samples={item: tuple(seconds) for item, seconds in self.seen.items()},
            ratios=[(one.end - one.start) / statistics.median(self.seen[one.item]) for one in ended],
        )
        return total - now, forecast_remaining(self.agenda, left)


def random_machine(seed: int) -> Machine:
    chance = random.Random(seed)
    count = chance.randint(10, 80)
    needs = [chance.sample(range(item), min(item, chance.choice((0, 0, 1, 2, 3)))) for item in range(count)]
    means = [chance.lognormvariate(3.0, 0.8) for _ in range(count)]
    return Machine(chance, agenda_for(needs, chance.choice((1, 2, 4, 8))), means)


def test_forecast_range_after_five_runs_contains_the_true_duration() -> None:
    """In 80 of 100 cases at least; half of the middles are within 15 % of it."""
    inside, errors, widths = [], [], []
    for seed in range(GRAPHS):
        machine = random_machine(seed)
        for run in range(RUNS):
            lengths, placed = machine.run()
            if run >= KNOWN_RUNS:
                truth, told = machine.at_half(placed)
                assert told is not None
                inside.append(told.low <= truth <= told.high)
                errors.append(abs(told.middle - truth) / truth)
                widths.append((told.high - told.low) / truth)
            machine.learn(lengths)
    share, error = sum(inside) / len(inside), statistics.median(errors)
    print(f"inside {share:.1%}, median error {error:.1%}, median width {statistics.median(widths):.0%} of the truth")
    assert share >= 0.8
    assert error <= 0.15
    assert statistics.median(widths) < 0.6, "a range that holds everything says nothing"


def test_single_sample_gives_a_range_and_zero_samples_no_forecast() -> None:
    agenda = agenda_for([[]], 1)
    told = forecast_remaining(agenda, RemainingWork(waiting=[0], running={}, samples={0: (100.0,)}))
    assert told is not None
    assert told.low <= 85
    assert 95 <= told.middle <= 105
    assert told.high >= 115
    assert forecast_remaining(agenda, RemainingWork(waiting=[0], running={}, samples={})) is None
    assert forecast_remaining(agenda, RemainingWork(waiting=[], running={}, samples={})) == Forecast(
        low=0, middle=0, high=0
    )


def test_forecast_counts_commands_without_samples() -> None:
    told = forecast_remaining(agenda_for([[], []], 1), RemainingWork(waiting=[0, 1], running={}, samples={0: (10.0,)}))
    assert told is not None
    assert told.unknown == 1


def test_forecast_accounts_for_late_commands_and_slow_machines() -> None:
    agenda = agenda_for([[], []], 1)
    late = forecast_remaining(agenda, RemainingWork(waiting=[], running={0: 100.0}, samples={0: (10.0, 11.0, 12.0)}))
    assert late is not None
    assert late.middle == pytest.approx(30.0)
    slow = forecast_remaining(
        agenda, RemainingWork(waiting=[0], running={}, samples={0: (10.0,) * 8}, ratios=[2.0] * 30)
    )
    assert slow is not None
    assert slow.middle == pytest.approx(20.0, rel=0.1)


@given(
    st.lists(st.lists(st.integers(0, 40), max_size=3), min_size=1, max_size=40),
    st.lists(st.floats(0.1, 100), min_size=40, max_size=40),
    st.integers(1, 6),
)
def test_schedule_is_within_its_theoretical_bounds(needs: list[list[int]], lengths: list[float], slots: int) -> None:
    """No shorter than the longest path and the work for each slot, no longer than Graham's bound over both (1966)."""
    sound = [sorted({need for need in each if need < item}) for item, each in enumerate(needs)]
    agenda = agenda_for(sound, slots)
    of_items = dict(enumerate(lengths[: len(needs)]))
    placed = {one.item: one for one in schedule_items(agenda, of_items)}
    assert placed.keys() == of_items.keys()
    took = max(one.end for one in placed.values())
    path, work = max(longest_paths(agenda, of_items).values()), sum(of_items.values()) / slots
    assert max(path, work) <= took * (1 + 1e-9)
    assert took <= (path + work) * (1 + 1e-9)
    for item, each in enumerate(sound):
        assert all(placed[need].end <= placed[item].start + 1e-9 for need in each)
    for one in placed.values():
        beside = [other for other in placed.values() if other.start <= one.start < other.end]
        assert len(beside) <= slots
        assert len({other.slot for other in beside}) == len(beside)


def test_an_exclusive_task_is_alone_in_a_schedule() -> None:
    placed = {
        one.item: one for one in schedule_items(agenda_for([[], [], []], 2, exclusive=(1,)), {0: 3.0, 1: 2.0, 2: 5.0})
    }
    alone = placed[1]
    assert all(one.end <= alone.start or one.start >= alone.end for item, one in placed.items() if item != 1)


def test_forecast_of_many_tasks_needs_no_schedule() -> None:
    agenda = agenda_for([[] for _ in range(20_001)], 4)
    told = forecast_remaining(
        agenda, RemainingWork(waiting=range(20_001), running={}, samples=dict.fromkeys(range(20_001), (4.0,)))
    )
    assert told is not None
    assert told.middle == pytest.approx(20_001, rel=0.1)


def test_tasks_that_wait_for_a_full_pool_are_not_rescanned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = [CommandId(f"t{item:03}") for item in range(200)]
    policies = dict.fromkeys(ids, TaskPolicy(pools={"agents": 1}))
    work = Work(source="test", root=b"/", order=tuple(ids), edges=(), policies=policies, pools={"agents": 2})
    agenda = make_command_plan(structs.replace(work, strategy="parallel", max_parallel=8), ids)
    popped: list[Any] = []
    pop = heapq.heappop

    def counted(heap: list[Any]) -> Any:
        popped.append(pop(heap))
        return popped[-1]

    monkeypatch.setattr(heapq, "heappop", counted)
    placed = schedule_items(agenda, dict.fromkeys(range(200), 1.0))
    assert max(one.end for one in placed) == 100
    assert len(popped) < 5 * 200
