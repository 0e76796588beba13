"""Matching of the lines of two texts: a patience diff (Bram Cohen, 2003), and a histogram diff of its gaps.

First, common lines at the start and at the end are matched. Among the lines between them, anchors are matched. Anchors
are lines that occur once in each text and are in the same order in both (a longest increasing subsequence, Fredman
1975). From each anchor, matching continues in both directions while lines are equal.

The lines between anchors are rarely unique, so runs of lines are matched there (histogram_diff.py). Texts are split
after each LF, and lines are compared without it. The time is O(n log n), plus a bounded time for runs.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import compress, count, islice, pairwise, repeat
from operator import ne, sub
from typing import NamedTuple, TypeVar

from codebatch.compare.matching.histogram_diff import UnmatchedGap, pair_runs

L = TypeVar("L", bytes, int)

# If a text exceeds one of these limits, only lines at its start and end are matched. Such a text is data or generated
# code.
COMPARED_BYTES_MAX = 8 << 20
COMPARED_LINES_MAX = 200_000

NO_LINE = -1


class SplitText(NamedTuple):
    """The lines of a text without their LF, and its size in bytes."""

    lines: Sequence[bytes]
    size: int


def split_text(text: bytes) -> SplitText:
    """Split a text at each LF into lines. A text that ends with LF has an empty last line."""
    return SplitText(text.split(b"\n"), len(text))


def pair_lines(old: SplitText, new: SplitText) -> array[int]:
    """Return for each line of `old` the index of the matching line of `new`, or NOWHERE.

    Lines are counted from 0. The indexes ascend.
    """
    is_big = max(old.size, new.size) > COMPARED_BYTES_MAX or max(len(old.lines), len(new.lines)) > COMPARED_LINES_MAX
    return pair_sequences(old.lines, new.lines, is_whole=not is_big)


def pair_sequences(left: Sequence[bytes], right: Sequence[bytes], *, is_whole: bool = True) -> array[int]:
    """Match two sequences of lines. Return the same as `pair_lines`.

    If `is_whole` is not set, only lines at the start and the end are matched.
    """
    paired = array("l", [NO_LINE]) * len(left)
    gap = _pair_ends(left, right, paired, UnmatchedGap(0, len(left), 0, len(right)))
    if is_whole and gap.start < gap.end and gap.other_start < gap.other_end:
        old, new = _number_lines(left, right, gap)
        pair_runs(old, new, paired, [*_gaps_between_anchors(old, new, paired, gap)])
    return paired


def _number_lines(left: Sequence[bytes], right: Sequence[bytes], gap: UnmatchedGap) -> tuple[list[int], list[int]]:
    """Return the lines of both sides as integers, which are compared faster than bytes.

    Equal lines get the same integer: the index of their first occurrence in the left gap. Lines before the gap, and
    lines that only the right gap has, get NOWHERE.
    """
    head = [NO_LINE] * gap.start
    first: dict[bytes, int] = {}
    old = map(first.setdefault, left[gap.start : gap.end], count(gap.start))
    return [*head, *old], [*head, *map(first.get, right[gap.other_start : gap.other_end], repeat(NO_LINE))]


def _gaps_between_anchors(
    old: Sequence[int], new: Sequence[int], paired: array[int], gap: UnmatchedGap
) -> Iterator[UnmatchedGap]:
    """Match the anchors of a gap, and the equal lines around each anchor. Yield the gaps that stay unmatched.

    If two adjacent anchors have the same distance in both texts, the lines between them are compared in one step. This
    is the usual case.
    """
    anchors, new_anchors = _find_anchors(old, new, gap)
    offsets = [*map(sub, new_anchors, anchors)]
    start, other = gap.start, gap.other_start
    for first, end in pairwise((0, *compress(count(1), map(ne, offsets, islice(offsets, 1, None))), len(anchors))):
        stretch = anchors[first:end]
        if not stretch:
            continue
        anchor, other_anchor = stretch[0], new_anchors[first]
        yield _pair_ends(old, new, paired, UnmatchedGap(start, anchor, other, other_anchor))
        start, other = stretch[-1] + 1, new_anchors[end - 1] + 1
        yield from _pair_stretch(old, new, paired, UnmatchedGap(anchor, start, other_anchor, other), stretch)
    yield _pair_ends(old, new, paired, UnmatchedGap(start, gap.end, other, gap.other_end))


def _pair_stretch(
    old: Sequence[int], new: Sequence[int], paired: array[int], gap: UnmatchedGap, anchors: Sequence[int]
) -> Iterator[UnmatchedGap]:
    """Match a stretch of `old` with a stretch of `new` that has the same length. Yield the gaps that stay unmatched.

    A stretch begins and ends with an anchor. Its lines are matched one to one, unless the lines between two anchors
    differ.
    """
    old_lines, new_lines = old[gap.start : gap.end], new[gap.other_start : gap.other_end]
    paired[gap.start : gap.end] = array("l", range(gap.other_start, gap.other_end))
    differing = [] if old_lines == new_lines else [*compress(range(gap.start, gap.end), map(ne, old_lines, new_lines))]
    offset = gap.other_start - gap.start
    at = 0
    while at < len(differing):
        first, behind = differing[at], anchors[bisect_left(anchors, differing[at])]
        at = bisect_left(differing, behind, at)
        end = differing[at - 1] + 1
        paired[first:end] = array("l", [NO_LINE]) * (end - first)
        yield UnmatchedGap(first, end, first + offset, end + offset)


def _pair_ends(old: Sequence[L], new: Sequence[L], paired: array[int], gap: UnmatchedGap) -> UnmatchedGap:
    """Match equal lines at the start and the end of a gap. Return the gap between them."""
    start, end, other, other_end = gap
    if start == end or other == other_end:
        return gap
    old_lines, new_lines = old[start:end], new[other:other_end]
    both = min(len(old_lines), len(new_lines))
    head = next(compress(count(), map(ne, old_lines, new_lines)), both)
    tail = min(next(compress(count(), map(ne, reversed(old_lines), reversed(new_lines))), both), both - head)
    paired[start : start + head] = array("l", range(other, other + head))
    paired[end - tail : end] = array("l", range(other_end - tail, other_end))
    return UnmatchedGap(start + head, end - tail, other + head, other_end - tail)


def _find_anchors(old: Sequence[int], new: Sequence[int], gap: UnmatchedGap) -> tuple[list[int], list[int]]:
    """Return the indexes of the anchors in `old` and in `new`: lines that occur once in each text.

    Only anchors that are in the same order in both texts are returned, as many as possible.
    """
    old_lines, new_lines = old[gap.start : gap.end], new[gap.other_start : gap.other_end]
    index_of = dict(zip(new_lines, count(gap.other_start)))
    repeated = {NO_LINE, *compress(old_lines, map(ne, old_lines, count(gap.start)))}
    repeated.update(compress(new_lines, map(ne, map(index_of.__getitem__, new_lines), count(gap.other_start))))
    anchors = sorted(index_of.keys() - repeated)
    new_anchors = [*map(index_of.__getitem__, anchors)]
    chosen = _longest_ascending(new_anchors)
    return [anchors[index] for index in chosen], [new_anchors[index] for index in chosen]


def _longest_ascending(numbers: Sequence[int]) -> Sequence[int]:
    """Return the indexes of a longest increasing subsequence of distinct numbers (patience sorting).

    Numbers at the start and the end that are already at their sorted position are part of it, so only the rest is
    searched.
    """
    ordered = sorted(numbers)
    head = next(compress(count(), map(ne, numbers, ordered)), len(numbers))
    tail = next(compress(count(), map(ne, reversed(numbers), reversed(ordered))), 0)
    tops: list[int] = []
    piles: list[int] = []
    below: list[int] = []
    for index in range(head, len(numbers) - tail):
        number = numbers[index]
        pile = bisect_left(tops, number) if tops and number < tops[-1] else len(tops)
        below.append(piles[pile - 1] if pile else NO_LINE)
        if pile == len(tops):
            tops.append(number)
            piles.append(index)
        else:
            tops[pile], piles[pile] = number, index
    longest = []
    index = piles[-1] if piles else NO_LINE
    while index != NO_LINE:
        longest.append(index)
        index = below[index - head]
    return [*range(head), *reversed(longest), *range(len(numbers) - tail, len(numbers))]
