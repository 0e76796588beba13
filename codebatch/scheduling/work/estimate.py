"""How long what is left of a work batch takes: list scheduling in thought, many times, with lengths that were seen.

Each time every task is given one of its samples, all of them times a factor that is drawn for the whole run, for a
machine that is slow is slow for all: around what was seen in this run so far, a quarter up and down at least. So one
sample alone makes a range. Pools are left out. Numbers are drawn by counting, so equal questions have equal answers.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import msgspec

from codebatch.scheduling.work.command_plan import SLOTS, CommandPlan
from codebatch.scheduling.work.makespan import schedule

SCHEDULES_MAX = 32
SCHEDULES_MIN = 4
STEPS_MAX = 4_000
"""Tasks, over all runs, that are scheduled in thought."""
TASKS_MAX = 20_000
"""Tasks above which none is scheduled: the longest path and the work for each slot say enough."""

SPREAD = 0.25
_LATE_SHARE = 0.3
_PRIOR_RUNS = 2.0
_MASK = (1 << 64) - 1


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """Within which seconds all is done in 1, 5 and 9 of 10 cases. `unknown`: items of which nobody knows their time."""

    low: float
    middle: float
    high: float
    unknown: int = 0


class Eta(msgspec.Struct, frozen=True):
    """Within how many seconds all is done in 1, 5 and 9 of 10 cases; of so many commands nobody knows."""

    seconds: tuple[float, float, float]
    unknown: int = 0


class RemainingWork(msgspec.Struct, frozen=True, kw_only=True):
    """What is left to do: items that `wait`, those that run, for so many seconds by now, and lengths that were seen.

    `samples` are of items, in seconds, none where nobody knows. `ratios`: of what ended in this run, how much longer it
    took than was expected.
    """

    waiting: Collection[int]
    running: Mapping[int, float]
    samples: Mapping[int, Sequence[float]]
    ratios: Sequence[float] = ()


def forecast(agenda: CommandPlan, left: RemainingWork) -> Forecast | None:
    """How long what is left takes; None where nobody knows it of anything that is."""
    items = [*left.waiting, *left.running]
    known = [item for item in items if left.samples.get(item)]
    if not known:
        return None if items else Forecast(low=0.0, middle=0.0, high=0.0)
    shift = _shift(left.ratios)
    runs = max(SCHEDULES_MIN, min(SCHEDULES_MAX, STEPS_MAX // max(1, len(items))))
    found = sorted(_once(agenda, left, shift, run, runs) for run in range(runs))
    middle = found[len(found) // 2] if len(found) % 2 else (found[len(found) // 2 - 1] + found[len(found) // 2]) / 2
    return Forecast(
        low=found[round(0.1 * (runs - 1))],
        middle=middle,
        high=found[round(0.9 * (runs - 1))],
        unknown=len(items) - len(known),
    )


def _shift(ratios: Sequence[float]) -> float:
    """How much longer everything takes now than it did: the mean of what was seen, and of some runs as ever."""
    logs = [math.log(min(10.0, max(0.1, ratio))) for ratio in ratios if ratio > 0]
    return math.exp(sum(logs) / (len(logs) + _PRIOR_RUNS))


def _once(agenda: CommandPlan, left: RemainingWork, shift: float, run: int, runs: int) -> float:
    factor = shift * (1 - SPREAD + 2 * SPREAD * (run + 0.5) / runs)
    lengths: dict[int, float] = {}
    for item in left.waiting:
        samples = left.samples.get(item)
        lengths[item] = _drawn(samples, run, item) * factor if samples else 0.0
    for item, seconds in left.running.items():
        lengths[item] = _rest(left.samples.get(item) or (), seconds, factor, run, item)
    if len(lengths) > TASKS_MAX:
        return _bound(agenda, lengths)
    return max((one.end for one in schedule(agenda, lengths, left.running)), default=0.0)


def _drawn(samples: Sequence[float], run: int, item: int) -> float:
    """One of some samples, and where there are few, somewhat more or less."""
    bits = _mixed(run * 0x9E3779B97F4A7C15 + item * 0xD1B54A32D192ED03)
    sample = samples[bits % len(samples)]
    return sample * (1 - SPREAD + 2 * SPREAD * ((bits >> 32) / (1 << 32))) if len(samples) < 3 else sample


def _rest(samples: Sequence[float], seconds: float, factor: float, run: int, item: int) -> float:
    """How much longer one takes that runs for so long: as those that took longer did; else it is late, and stays so."""
    if not samples:
        return 0.0
    longer = [sample for sample in samples if sample * factor > seconds]
    return _drawn(longer, run, item) * factor - seconds if longer else _LATE_SHARE * seconds


def _mixed(value: int) -> int:
    """64 bits that nobody foresees, of a number (splitmix64, Steele et al. 2014)."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def _bound(agenda: CommandPlan, lengths: Mapping[int, float]) -> float:
    """What no schedule is shorter than: the longest path, and the work for each slot."""
    tails = longest_paths(agenda, lengths)
    return max(*tails.values(), sum(lengths.values()) / agenda.capacity[SLOTS])


def longest_paths(agenda: CommandPlan, lengths: Mapping[int, float]) -> dict[int, float]:
    """Of each item its length and that of the longest path of what needs it, in seconds."""
    users = dict.fromkeys(lengths, 0)
    for item in lengths:
        for need in agenda.needs[item]:
            if need.item in users:
                users[need.item] += 1
    tails = dict.fromkeys(lengths, 0.0)
    free = [item for item, count in users.items() if not count]
    while free:
        item = free.pop()
        tails[item] += lengths[item]
        for need in agenda.needs[item]:
            if need.item in users:
                tails[need.item] = max(tails[need.item], tails[item])
                users[need.item] -= 1
                if not users[need.item]:
                    free.append(need.item)
    return tails
