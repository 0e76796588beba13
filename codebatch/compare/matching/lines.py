"""Which line of one text is which of another: a patience diff (Bram Cohen, 2003) whose gaps a histogram diff closes.

Common lines at the head and at the end are paired; of what is left, lines that occur once on both sides and stand in
the same order on both (a longest increasing subsequence, Fredman 1975) are anchors; from each anchor the pairing goes
on outward as far as lines are equal. What lies between two anchors, where lines that are unique among others there
tell little, is paired run by run (runs.py).

A text is cut behind each LF, and whole lines without it are compared. Time is O(n log n), and that of runs is bounded.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import compress, count, islice, pairwise, repeat
from operator import ne, sub
from typing import NamedTuple, TypeVar

from codebatch.compare.matching.histogram_diff import Gap, pair_runs

L = TypeVar("L", bytes, int)

# Above either only the head and the end are paired: such texts are data or generated.
BYTES_MAX = 8 << 20
LINES_MAX = 200_000

NOWHERE = -1


class TextLines(NamedTuple):
    """A text in lines, without their ends, and of how many bytes it is."""

    lines: Sequence[bytes]
    size: int


def written_in(text: bytes) -> TextLines:
    """The lines of a text: one more than it has ends of lines."""
    return TextLines(text.split(b"\n"), len(text))


def pair_lines(old: TextLines, new: TextLines) -> array[int]:
    """For each line of `old` the line of `new` that it is, both from 0; NOWHERE where it is none. Ascending."""
    is_big = max(old.size, new.size) > BYTES_MAX or max(len(old.lines), len(new.lines)) > LINES_MAX
    return pair_sequences(old.lines, new.lines, is_whole=not is_big)


def pair_sequences(left: Sequence[bytes], right: Sequence[bytes], *, is_whole: bool = True) -> array[int]:
    """`pair_lines` of lines. Unless `is_whole`, only the head and the end are paired."""
    paired = array("l", [NOWHERE]) * len(left)
    gap = _pair_ends(left, right, paired, Gap(0, len(left), 0, len(right)))
    if is_whole and gap.start < gap.end and gap.other < gap.other_end:
        old, new = _numbered(left, right, gap)
        pair_runs(old, new, paired, [*_between_anchors(old, new, paired, gap)])
    return paired


def _numbered(left: Sequence[bytes], right: Sequence[bytes], gap: Gap) -> tuple[list[int], list[int]]:
    """The lines of a gap as numbers, those of the left one as where each is there first: these are compared sooner.

    Before the gap, which is where it is on both sides, they are NOWHERE; so is what is on the right alone.
    """
    head = [NOWHERE] * gap.start
    first: dict[bytes, int] = {}
    old = map(first.setdefault, left[gap.start : gap.end], count(gap.start))
    return [*head, *old], [*head, *map(first.get, right[gap.other : gap.other_end], repeat(NOWHERE))]


def _between_anchors(old: Sequence[int], new: Sequence[int], paired: array[int], gap: Gap) -> Iterator[Gap]:
    """Pair the anchors of a gap, and outward from each; what is left between them.

    Most anchors follow one another as far apart on both sides: so many lines are compared at once.
    """
    anchors, others = _anchors(old, new, gap)
    offsets = [*map(sub, others, anchors)]
    start, other = gap.start, gap.other
    for first, end in pairwise((0, *compress(count(1), map(ne, offsets, islice(offsets, 1, None))), len(anchors))):
        stretch = anchors[first:end]
        if not stretch:
            continue
        at, its_other = stretch[0], others[first]
        yield _pair_ends(old, new, paired, Gap(start, at, other, its_other))
        start, other = stretch[-1] + 1, others[end - 1] + 1
        yield from _pair_stretch(old, new, paired, Gap(at, start, its_other, other), stretch)
    yield _pair_ends(old, new, paired, Gap(start, gap.end, other, gap.other_end))


def _pair_stretch(
    old: Sequence[int], new: Sequence[int], paired: array[int], gap: Gap, anchors: Sequence[int]
) -> Iterator[Gap]:
    """Pair as many lines of both sides, the first and the last of which are anchors; what is left between two."""
    ours, theirs = old[gap.start : gap.end], new[gap.other : gap.other_end]
    paired[gap.start : gap.end] = array("l", range(gap.other, gap.other_end))
    unlike = [] if ours == theirs else [*compress(range(gap.start, gap.end), map(ne, ours, theirs))]
    offset = gap.other - gap.start
    at = 0
    while at < len(unlike):
        first, behind = unlike[at], anchors[bisect_left(anchors, unlike[at])]
        at = bisect_left(unlike, behind, at)
        end = unlike[at - 1] + 1
        paired[first:end] = array("l", [NOWHERE]) * (end - first)
        yield Gap(first, end, first + offset, end + offset)


def _pair_ends(old: Sequence[L], new: Sequence[L], paired: array[int], gap: Gap) -> Gap:
    """Pair the lines that are equal at the head and at the end of a gap; what is left of it."""
    start, end, other, other_end = gap
    if start == end or other == other_end:
        return gap
    ours, theirs = old[start:end], new[other:other_end]
    both = min(len(ours), len(theirs))
    head = next(compress(count(), map(ne, ours, theirs)), both)
    tail = min(next(compress(count(), map(ne, reversed(ours), reversed(theirs))), both), both - head)
    paired[start : start + head] = array("l", range(other, other + head))
    paired[end - tail : end] = array("l", range(other_end - tail, other_end))
    return Gap(start + head, end - tail, other + head, other_end - tail)


def _anchors(old: Sequence[int], new: Sequence[int], gap: Gap) -> tuple[list[int], list[int]]:
    """Places of lines that occur once on both sides, as many as stand in the same order on both."""
    ours, theirs = old[gap.start : gap.end], new[gap.other : gap.other_end]
    there = dict(zip(theirs, count(gap.other)))
    of_many = {NOWHERE, *compress(ours, map(ne, ours, count(gap.start)))}
    of_many.update(compress(theirs, map(ne, map(there.__getitem__, theirs), count(gap.other))))
    anchors = sorted(there.keys() - of_many)
    others = [*map(there.__getitem__, anchors)]
    chosen = _longest_ascending(others)
    return [anchors[each] for each in chosen], [others[each] for each in chosen]


def _longest_ascending(numbers: Sequence[int]) -> Sequence[int]:
    """The places of the most of some numbers, no two of which are equal, that ascend: patience sorting.

    Those that nothing lesser is behind, and nothing greater before, are all among them.
    """
    ordered = sorted(numbers)
    head = next(compress(count(), map(ne, numbers, ordered)), len(numbers))
    tail = next(compress(count(), map(ne, reversed(numbers), reversed(ordered))), 0)
    tops: list[int] = []
    piles: list[int] = []
    below: list[int] = []
    for place in range(head, len(numbers) - tail):
        number = numbers[place]
        pile = bisect_left(tops, number) if tops and number < tops[-1] else len(tops)
        below.append(piles[pile - 1] if pile else NOWHERE)
        if pile == len(tops):
            tops.append(number)
            piles.append(place)
        else:
            tops[pile], piles[pile] = number, place
    found = []
    place = piles[-1] if piles else NOWHERE
    while place != NOWHERE:
        found.append(place)
        place = below[place - head]
    return [*range(head), *reversed(found), *range(len(numbers) - tail, len(numbers))]
