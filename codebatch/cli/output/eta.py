"""The remaining time as text. For phases, it is estimated from the pace: the share of work done over time."""

from __future__ import annotations

from bisect import bisect_right
from math import inf

PACE_SECONDS_MIN = 2.0
PACE_RATIO_MAX = 2.0
SAMPLES_MAX = 512

_TIME_UNITS = (("h", 3600), ("m", 60), ("s", 1))


def eta_text(
    eta: tuple[float, float, float] | None,
    *,
    unknown: int = 0,
    blocked: int = 0,
    past: float = 0.0,
    is_paused: bool = False,
) -> str:
    """Return the remaining time as text: `12-19 m left`. Return an empty text if it is unknown.

    `eta` are estimates that were made `past` seconds ago. `unknown` is the number of tasks without an estimate. If
    `blocked` tasks wait for answers, the text is `12-19 m left once questions are answered`, because the time until an
    answer is unknown. If the batch `is_paused`, the text is `12-19 m left after the pause`.
    """
    if eta is None:
        return ""
    suffix = "left after the pause" if is_paused else "left once questions are answered" if blocked else "left"
    low, _, high = (max(0.0, bound - past) for bound in eta)
    if unknown:
        return f"at least {_rounded_duration(low)} {suffix}"
    unit, seconds = next(bound for bound in _TIME_UNITS if high >= bound[1] * 2 or bound[1] == 1)
    first, last = round(low / seconds), max(1, round(high / seconds))
    return f"{first}-{last} {unit} {suffix}" if first < last else f"about {last} {unit} {suffix}"


def _rounded_duration(seconds: float) -> str:
    unit, size = next(unit_size for unit_size in _TIME_UNITS if seconds >= unit_size[1] * 2 or unit_size[1] == 1)
    return f"{round(seconds / size)} {unit}"


class PaceEstimator:
    """The pace of a phase: samples of the share of its work that was done at different times.

    One thread adds samples while another thread reads them. No lock is needed, because a sample is added as one object,
    and thinning out the samples makes a new list.
    """

    def __init__(self) -> None:
        self._samples: list[tuple[float, float]] = []
        self._gap = 0.0

    def __len__(self) -> int:
        return len(self._samples)

    def add_sample(self, now: float, share: float) -> None:
        """Record the share of work that is done at the time `now`.

        At most `SAMPLES_MAX` samples are kept, at about equal intervals.
        """
        if self._samples and now - self._samples[-1][0] < self._gap:
            return
        self._samples.append((now, share))
        if len(self._samples) == SAMPLES_MAX:
            self._samples = [*self._samples[:-1:2], self._samples[-1]]
            self._gap = (now - self._samples[0][0]) / len(self._samples)

    def remaining_seconds(self, now: float) -> float | None:
        """Return the remaining seconds. Return None if the estimate could be wrong by more than a factor of two.

        The two halves of the elapsed time are compared. The pace of one half may be at most PACE_RATIO_MAX times that
        of the other.
        """
        samples = self._samples
        if not samples or now - samples[0][0] < PACE_SECONDS_MIN:
            return None
        (began, at_first), (_, at_last) = samples[0], samples[-1]
        _, in_middle = samples[bisect_right(samples, (began + (now - began) / 2, inf)) - 1]
        slow, fast = sorted((in_middle - at_first, at_last - in_middle))
        if slow <= 0 or fast > slow * PACE_RATIO_MAX:
            return None
        return (1 - at_last) * (now - began) / (at_last - at_first)
