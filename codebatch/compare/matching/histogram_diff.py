"""A histogram diff of gaps between two texts (Shawn Pearce, JGit; `git diff --histogram`).

In each gap, one run of equal lines is matched: the longest run, or the run with the rarest line. The lines before and
after the run are then matched in the same way. Runs are searched only around rare lines. A line is rare if it occurs at
most as often as the rarest line of the best run so far. If a gap has no rare line, none of its lines are matched.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

# If a line occurs more often than this in a gap, no run is searched around the line.
_OCCURRENCES_MAX = 64
# The maximum number of comparisons of lines. Once this number is reached, the remaining lines stay unmatched.
_SEARCH_STEPS_MAX = 4_000_000


class UnmatchedGap(NamedTuple):
    """Unmatched lines: [start, end) of one text and [other, other_end) of the other text."""

    start: int
    end: int
    other_start: int
    other_end: int


def pair_runs(
    old: Sequence[Hashable], new: Sequence[Hashable], paired: array[int], gaps: Iterable[UnmatchedGap]
) -> None:
    """Match the lines of gaps. `paired[i]` is set to the index in `new` of the line that matches line i of `old`."""
    steps = _SEARCH_STEPS_MAX
    remaining = list(gaps)
    while remaining and steps > 0:
        gap = remaining.pop()
        if gap.start == gap.end or gap.other_start == gap.other_end:
            continue
        search = _BestRunSearch(old, new, gap)
        run = search.find_best_run()
        steps -= search.steps
        if run is None:
            continue
        for offset in range(run.end - run.start):
            paired[run.start + offset] = run.other_start + offset
        remaining.append(UnmatchedGap(gap.start, run.start, gap.other_start, run.other_start))
        remaining.append(UnmatchedGap(run.end, gap.end, run.other_end, gap.other_end))


class _BestRunSearch:
    """The search for the best run of equal lines in a gap. A run is represented as a Gap."""

    def __init__(self, old: Sequence[Hashable], new: Sequence[Hashable], gap: UnmatchedGap) -> None:
        self._old = old
        self._new = new
        self._gap = gap
        places: dict[Hashable, list[int]] = defaultdict(list)
        for place in range(gap.start, gap.end):
            places[old[place]].append(place)
        self._places: Mapping[Hashable, Sequence[int]] = places
        self._best: UnmatchedGap | None = None
        self._rarest = _OCCURRENCES_MAX
        self.steps = gap.end - gap.start + gap.other_end - gap.other_start

    def find_best_run(self) -> UnmatchedGap | None:
        """Return the best run, or None if the gap has no rare line."""
        other = self._gap.other_start
        while other < self._gap.other_end:
            places = self._places.get(self._new[other], ())
            other = self._examine_runs(places, other) if 0 < len(places) <= self._rarest else other + 1
        return self._best

    def _examine_runs(self, places: Sequence[int], other: int) -> int:
        """Search for runs around one line of the other text. `places` are its occurrences.

        Return the next line to search.
        """
        next_line, next_other = self._gap.start, other + 1
        for place in places:
            if place < next_line:
                continue
            run, rarity = self._run_around(place, other, len(places))
            self.steps += run.end - run.start
            next_line, next_other = run.end, max(next_other, run.other_end)
            is_longer = self._best is None or run.end - run.start > self._best.end - self._best.start
            if is_longer or rarity < self._rarest:
                self._best, self._rarest = run, rarity
        return next_other

    def _run_around(self, place: int, other: int, rarity: int) -> tuple[UnmatchedGap, int]:
        """Return the run of equal lines around two equal lines, and how often its rarest line occurs."""
        old, new, gap = self._old, self._new, self._gap
        start, other_start = place, other
        while start > gap.start and other_start > gap.other_start and old[start - 1] == new[other_start - 1]:
            start, other_start = start - 1, other_start - 1
        end, other_end = place + 1, other + 1
        while end < gap.end and other_end < gap.other_end and old[end] == new[other_end]:
            end, other_end = end + 1, other_end + 1
        rarity = min(rarity, *(len(self._places[old[line]]) for line in range(start, end))) if rarity > 1 else 1
        return UnmatchedGap(start, end, other_start, other_end), rarity
