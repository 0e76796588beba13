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
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import lt

from codebatch.compare.runs import Gap, pair_runs

# Above either only the head and the end are paired: such texts are data or generated.
BYTES_MAX = 8 << 20
LINES_MAX = 200_000

NOWHERE = -1


def pair_lines(old: bytes, new: bytes) -> array[int]:
    """For each line of `old` the line of `new` that it is, both from 0; NOWHERE where it is none. Ascending."""
    left, right = old.split(b"\n"), new.split(b"\n")
    is_big = max(len(old), len(new)) > BYTES_MAX or max(len(left), len(right)) > LINES_MAX
    return pair_sequences(left, right, is_whole=not is_big)


def pair_sequences(left: Sequence[bytes], right: Sequence[bytes], *, is_whole: bool = True) -> array[int]:
    """`pair_lines` of lines. Unless `is_whole`, only the head and the end are paired."""
    paired = array("l", [NOWHERE]) * len(left)
    gap = _pair_ends(left, right, paired, Gap(0, len(left), 0, len(right)))
    if is_whole and gap.start < gap.end and gap.other < gap.other_end:
        gaps = [_pair_ends(left, right, paired, each) for each in _between_anchors(left, right, paired, gap)]
        pair_runs(left, right, paired, gaps)
    return paired


def _between_anchors(old: Sequence[bytes], new: Sequence[bytes], paired: array[int], gap: Gap) -> Iterator[Gap]:
    """Pair the anchors of a gap; what lies between them."""
    start, other = gap.start, gap.other
    for anchor, its_other in _anchors(old[gap.start : gap.end], new[gap.other : gap.other_end]):
        anchor, its_other = anchor + gap.start, its_other + gap.other
        paired[anchor] = its_other
        if start < anchor and other < its_other:
            yield Gap(start, anchor, other, its_other)
        start, other = anchor + 1, its_other + 1
    yield Gap(start, gap.end, other, gap.other_end)


def _pair_ends(old: Sequence[bytes], new: Sequence[bytes], paired: array[int], gap: Gap) -> Gap:
    """Pair the lines that are equal at the head and at the end of a gap; what is left of it."""
    start, end, other, other_end = gap
    while start < end and other < other_end and old[start] == new[other]:
        paired[start] = other
        start, other = start + 1, other + 1
    while start < end and other < other_end and old[end - 1] == new[other_end - 1]:
        end, other_end = end - 1, other_end - 1
        paired[end] = other_end
    return Gap(start, end, other, other_end)


def _anchors(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int]]:
    """Places of lines that occur once on both sides, as many as stand in the same order on both."""
    counts = Counter(new)
    place = {line: index for index, line in enumerate(new) if counts[line] == 1}
    counts = Counter(old)
    common = [(index, place[line]) for index, line in enumerate(old) if counts[line] == 1 and line in place]
    return _longest_ascending(common)


def _longest_ascending(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The most of some pairs whose second numbers ascend, as the first ones do: patience sorting."""
    others = [other for _, other in pairs]
    if all(map(lt, others, islice(others, 1, None))):
        return [*pairs]
    tops: list[int] = []
    piles: list[int] = []
    below: list[int] = []
    for index, (_, other) in enumerate(pairs):
        pile = bisect_left(tops, other) if tops and other < tops[-1] else len(tops)
        below.append(piles[pile - 1] if pile else NOWHERE)
        if pile == len(tops):
            tops.append(other)
            piles.append(index)
        else:
            tops[pile], piles[pile] = other, index
    found = []
    index = piles[-1] if piles else NOWHERE
    while index != NOWHERE:
        found.append(pairs[index])
        index = below[index]
    return found[::-1]
