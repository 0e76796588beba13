"""Estimation of the remaining time of a work batch: Monte Carlo simulation of list scheduling with observed durations.

Each simulation draws one observed duration for each task. All durations of a simulation are multiplied by the same
factor, because a slow machine slows all tasks. The factors are between 25 % below and 25 % above the ratio observed in
this run, so even one observation gives a range. Random numbers come from a counter, so equal inputs give equal results.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import msgspec

from codebatch.scheduling.work.command_plan import SLOTS_POOL, CommandPlan, longest_paths
from codebatch.scheduling.work.makespan import schedule_items

SIMULATIONS_MAX = 32
SIMULATIONS_MIN = 4
SIMULATED_ITEMS_MAX = 4_000
"""Maximum number of scheduled tasks, summed over all simulations of one forecast."""
FORECAST_TASKS_MAX = 20_000
"""Maximum number of tasks for which schedules are simulated.

For more tasks, the estimate is a lower bound of every schedule.
"""

SAMPLE_SPREAD = 0.25
_LATE_EXTRA_SHARE = 0.3
_PRIOR_RUNS = 2.0
_UINT64_MASK = (1 << 64) - 1


class Eta(msgspec.Struct, frozen=True):
    """The seconds until the batch ends, as quantiles 0.1, 0.5 and 0.9.

    `unknown` is the number of items whose duration is unknown. Their duration is assumed to be 0 seconds.
    """

    seconds: tuple[float, float, float]
    unknown: int = 0


class RemainingWork(msgspec.Struct, frozen=True, kw_only=True):
    """The items that have not ended, and observed durations.

    - `waiting`: items that have not started.
    - `running`: maps items to the seconds since their start.
    - `samples`: maps items to observed durations in seconds. If an item has no samples, its duration is unknown.
    - `ratios`: observed durations in this run, each divided by the expected duration.
    - `delays`: maps items to the seconds until their pools open.
    """

    waiting: Collection[int]
    running: Mapping[int, float]
    samples: Mapping[int, Sequence[float]]
    ratios: Sequence[float] = ()
    delays: Mapping[int, float] = msgspec.field(default_factory=dict)


def forecast_remaining(agenda: CommandPlan, remaining_work: RemainingWork) -> Eta | None:
    """Return the forecast for the remaining work, or None if no duration is known."""
    items = [*remaining_work.waiting, *remaining_work.running]
    known = [item for item in items if remaining_work.samples.get(item)]
    if not known:
        return None if items else Eta((0.0, 0.0, 0.0))
    shift = _duration_factor(remaining_work.ratios)
    runs = max(SIMULATIONS_MIN, min(SIMULATIONS_MAX, SIMULATED_ITEMS_MAX // max(1, len(items))))
    ends = sorted(_simulate_makespan(agenda, remaining_work, shift, run, runs) for run in range(runs))
    middle = ends[len(ends) // 2] if len(ends) % 2 else (ends[len(ends) // 2 - 1] + ends[len(ends) // 2]) / 2
    low, high = ends[round(0.1 * (runs - 1))], ends[round(0.9 * (runs - 1))]
    return Eta((low, middle, high), len(items) - len(known))


def _duration_factor(ratios: Sequence[float]) -> float:
    """Return the factor by which all durations are multiplied.

    It is the geometric mean of the observed ratios and of one additional ratio of 1.
    """
    logs = [math.log(min(10.0, max(0.1, ratio))) for ratio in ratios if ratio > 0]
    return math.exp(sum(logs) / (len(logs) + _PRIOR_RUNS))


def _simulate_makespan(agenda: CommandPlan, remaining: RemainingWork, shift: float, run: int, runs: int) -> float:
    factor = shift * (1 - SAMPLE_SPREAD + 2 * SAMPLE_SPREAD * (run + 0.5) / runs)
    lengths: dict[int, float] = {}
    for item in remaining.waiting:
        samples = remaining.samples.get(item)
        lengths[item] = _draw_sample(samples, run, item) * factor if samples else 0.0
    for item, seconds in remaining.running.items():
        lengths[item] = _draw_remaining(remaining.samples.get(item) or (), seconds, factor, run, item)
    delays = {item: remaining.delays[item] for item in remaining.waiting if item in remaining.delays}
    if len(lengths) > FORECAST_TASKS_MAX:
        return max(_lower_bound(agenda, lengths), *delays.values(), 0.0)
    return max((one.end for one in schedule_items(agenda, lengths, remaining.running, delays=delays)), default=0.0)


def _draw_sample(samples: Sequence[float], run: int, item: int) -> float:
    """Return one of the samples, drawn at random.

    If there are fewer than three samples, change it at random by up to SPREAD.
    """
    bits = _mix_bits(run * 0x9E3779B97F4A7C15 + item * 0xD1B54A32D192ED03)
    sample = samples[bits % len(samples)]
    return sample * (1 - SAMPLE_SPREAD + 2 * SAMPLE_SPREAD * ((bits >> 32) / (1 << 32))) if len(samples) < 3 else sample


def _draw_remaining(samples: Sequence[float], seconds: float, factor: float, run: int, item: int) -> float:
    """Return the remaining seconds of a running item. Only samples longer than the item's time so far are used.

    If no sample is longer, the item is late. Then return a share of its time so far.
    """
    if not samples:
        return 0.0
    longer = [sample for sample in samples if sample * factor > seconds]
    return _draw_sample(longer, run, item) * factor - seconds if longer else _LATE_EXTRA_SHARE * seconds


def _mix_bits(value: int) -> int:
    """Return 64 pseudorandom bits computed from a number (splitmix64, Steele et al. 2014)."""
    value = (value + 0x9E3779B97F4A7C15) & _UINT64_MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _UINT64_MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _UINT64_MASK
    return value ^ (value >> 31)


def _lower_bound(agenda: CommandPlan, lengths: Mapping[int, float]) -> float:
    """Return a duration in seconds that no schedule can be shorter than.

    It is the longest path, or the total work divided by the number of slots, whichever is longer.
    """
    tails = longest_paths(agenda.needs, lengths)
    return max(*tails.values(), sum(lengths.values()) / agenda.capacity[SLOTS_POOL])
