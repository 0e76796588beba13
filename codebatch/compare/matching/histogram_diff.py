"""Runs of equal lines in the gaps of two texts: a histogram diff (Shawn Pearce's of JGit, as git's `--histogram`).

Of the runs of equal lines of a gap the one is paired that is the longest, or has the rarest line; then what is before
and what is behind it in the same way. Only lines that are rare begin a run, no more places of them than the rarest line
of the best run has. Where all lines of a gap stand at too many places, none is paired.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

# A line that stands at more places of a gap begins no run.
_PLACES_MAX = 64
# So many lines of two texts are looked at; what is not paired by then is not.
_STEPS_MAX = 4_000_000


class Gap(NamedTuple):
    """Lines [start, end) of the one and [other, other_end) of the other that are still to be paired."""

    start: int
    end: int
    other: int
    other_end: int


def pair_runs(old: Sequence[Hashable], new: Sequence[Hashable], paired: array[int], gaps: Iterable[Gap]) -> None:
    """Pair the lines of gaps. `paired` is for each line of `old` the place of it in `new`."""
    steps = _STEPS_MAX
    left = list(gaps)
    while left and steps > 0:
        gap = left.pop()
        if gap.start == gap.end or gap.other == gap.other_end:
            continue
        search = _Search(old, new, gap)
        run = search.best()
        steps -= search.steps
        if run is None:
            continue
        for offset in range(run.end - run.start):
            paired[run.start + offset] = run.other + offset
        left.append(Gap(gap.start, run.start, gap.other, run.other))
        left.append(Gap(run.end, gap.end, run.other_end, gap.other_end))


class _Search:
    """For the best run of a gap, which is a gap itself that is paired."""

    def __init__(self, old: Sequence[Hashable], new: Sequence[Hashable], gap: Gap) -> None:
        self._old = old
        self._new = new
        self._gap = gap
        places: dict[Hashable, list[int]] = defaultdict(list)
        for place in range(gap.start, gap.end):
            places[old[place]].append(place)
        self._places: Mapping[Hashable, Sequence[int]] = places
        self._best: Gap | None = None
        self._rarest = _PLACES_MAX
        self.steps = gap.end - gap.start + gap.other_end - gap.other

    def best(self) -> Gap | None:
        """The run; None where there is none that begins with a rare line."""
        other = self._gap.other
        while other < self._gap.other_end:
            places = self._places.get(self._new[other], ())
            other = self._look(places, other) if 0 < len(places) <= self._rarest else other + 1
        return self._best

    def _look(self, places: Sequence[int], other: int) -> int:
        """Look at the runs of a line of the other text; where to look next."""
        behind, behind_other = self._gap.start, other + 1
        for place in places:
            if place < behind:
                continue
            run, rarity = self._run(place, other, len(places))
            self.steps += run.end - run.start
            behind, behind_other = run.end, max(behind_other, run.other_end)
            is_longer = self._best is None or run.end - run.start > self._best.end - self._best.start
            if is_longer or rarity < self._rarest:
                self._best, self._rarest = run, rarity
        return behind_other

    def _run(self, place: int, other: int, rarity: int) -> tuple[Gap, int]:
        """The run around a pair of equal lines, and at how many places its rarest line stands."""
        old, new, gap = self._old, self._new, self._gap
        start, its_other = place, other
        while start > gap.start and its_other > gap.other and old[start - 1] == new[its_other - 1]:
            start, its_other = start - 1, its_other - 1
        end, other_end = place + 1, other + 1
        while end < gap.end and other_end < gap.other_end and old[end] == new[other_end]:
            end, other_end = end + 1, other_end + 1
        rarity = min(rarity, *(len(self._places[old[line]]) for line in range(start, end))) if rarity > 1 else 1
        return Gap(start, end, its_other, other_end), rarity
