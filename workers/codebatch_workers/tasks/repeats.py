"""Repeats: stretches of lines that stand at several places of a text, in time that no text makes quadratic.

A `Text` is the hashes of the lines of many files, one after the other. A *place* is an index of it. A separator, a
number that occurs once, stands before and after each stretch: nothing that is equal at two places reaches across.

A *window* is LINES_MIN lines; equal windows form a class. A window that overlaps its equal is part of a table, say of
like lines, and has no class: a table is no copy of itself. Two places of a class are extended to both sides as far as
they are equal: a *run*. Where a run overlaps its copy, it is a row of copies of as many lines as lie between the two.

Whatever line of a repeat is taken, it lies in a window with a class, so that the runs of each window with the next ones
of its class cover every line that is repeated. Two things keep that cheap. A window meets _NEIGHBOURS of its class on
each side and no more, so that the longest run of one that stands at more places may be missed, but no line. And where
the windows of a class stand, all of them, behind those of another one, their runs are those of that other.

What is told is a cover of the runs: each repeat is the one that reaches farthest of those that begin in or right behind
the one before. So a place lies in two repeats at most, and there are no more of them than lines.

Hashes are 64 bits of SipHash, for equality in this process only: nothing is ordered by them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, compress, islice
from operator import eq, sub
from typing import NamedTuple

from codebatch_workers.tasks.fingerprints import LINES_MIN

# Ten lines with less in them are brackets and the like. White space is not counted.
BYTES_MIN = 200
_NEIGHBOURS = 8
_NO_CLASS = -1
_HASH_BYTES = 8

Span = tuple[int, int]


class Repeat(NamedTuple):
    """`lines` lines at a place, and all the places where they stand, ascending, itself included."""

    start: int
    lines: int
    places: Sequence[int]

    @property
    def end(self) -> int:
        """The place behind its last line."""
        return self.start + self.lines


class Text:
    """Stretches of code lines, each with the number that its owner was given."""

    def __init__(self) -> None:
        self.hashes = array("q", [0])
        self.numbers = array("I", [0])
        self._code = bytearray()
        self._bytes_before = array("Q", [0, 0])
        self._starts = array("Q")
        self._owners = array("I")
        self._whole = bytearray()

    def add(self, owner: int, lines: Sequence[bytes], numbers: Sequence[int], *, is_whole: bool) -> None:
        """Append a stretch; `is_whole`: it is repeated as such, wherever its owner's other copies may be.

        The stretches of one owner follow each other.
        """
        self._starts.append(len(self.hashes))
        self._owners.append(owner)
        self._whole.append(is_whole)
        self.hashes.extend(map(hash, lines))
        self.hashes.append(len(self._starts))
        self.numbers.extend(numbers)
        self.numbers.append(0)
        before = len(self._code)
        self._code += b"".join(lines)
        self._bytes_before.extend(islice(accumulate(map(len, lines), initial=before), 1, None))
        self._bytes_before.append(self._bytes_before[-1])

    def owner(self, place: int) -> int:
        """Whose line stands at a place."""
        return self._owners[bisect_right(self._starts, place) - 1]

    def stretches(self) -> Iterator[tuple[int, int, int, bool]]:
        """Owner, first place, place behind the last, whether it is repeated as such; in order."""
        ends = [*(start - 1 for start in islice(self._starts, 1, None)), len(self.hashes) - 1]
        for owner, start, end, whole in zip(self._owners, self._starts, ends, self._whole, strict=False):
            yield owner, start, end, bool(whole)

    def code(self, start: int, end: int) -> bytes:
        """The lines between two places, joined by LF."""
        before = self._bytes_before
        return b"\n".join(self._code[before[place] : before[place + 1]] for place in range(start, end))

    def is_big(self, start: int, end: int) -> bool:
        """Whether there is enough in the lines between two places."""
        return self._bytes_before[end] - self._bytes_before[start] >= BYTES_MIN


def find_repeats(text: Text) -> Iterator[tuple[int, list[Repeat]]]:
    """The repeats of each owner that has any, by place; owners in their order."""
    classes = _Classes(text.hashes)
    for owner, spans in _spans_by_owner(text, classes):
        found = [Repeat(start, end - start, classes.places(start, end)) for start, end in _cover(spans)]
        if found:
            yield owner, found


class _Classes:
    """Which windows are equal. `fresh[place]` says whether the runs of the window there are to be looked at."""

    def __init__(self, hashes: array[int]) -> None:
        self.data = hashes.tobytes()
        self.members: list[Sequence[int]] = []
        self._class_of = array("i", [_NO_CLASS]) * len(hashes)
        self._contents: dict[tuple[int, int, int], dict[int, array[int]]] = {}
        self._find_members(len(hashes) - LINES_MIN + 1)
        self.fresh = bytearray(len(hashes))
        for number, members in enumerate(self.members):
            if members and not self._follows(number):
                for place in members:
                    self.fresh[place] = True

    def _find_members(self, windows: int) -> None:
        step, size = _HASH_BYTES, _HASH_BYTES * LINES_MIN
        begins, ends = range(0, step * windows, step), range(size, size + step * windows, step)
        keys = array("q", map(hash, map(self.data.__getitem__, map(slice, begins, ends))))
        ordered = sorted(keys)
        repeated = set(compress(ordered, map(eq, ordered, islice(ordered, 1, None))))
        del ordered
        numbers: dict[int, int] = {}
        found: list[array[int]] = []
        for place in compress(range(windows), map(repeated.__contains__, keys)):
            number = numbers.setdefault(keys[place], len(found))
            if number == len(found):
                found.append(array("I"))
            found[number].append(place)
        for number, members in enumerate(found):
            if min(map(sub, islice(members, 1, None), members)) < LINES_MIN:
                self.members.append(())
                continue
            self.members.append(members)
            for place in members:
                self._class_of[place] = number

    def _follows(self, number: int) -> bool:
        """Whether the windows of a class stand, all of them, right behind those of another."""
        members = self.members[number]
        before = self._class_of[members[0] - 1]
        return (
            before != _NO_CLASS
            and len(self.members[before]) == len(members)
            and all(self._class_of[place - 1] == before for place in members)
        )

    def neighbours(self, place: int) -> Sequence[int]:
        """The next places of the same class on both sides."""
        members = self.members[self._class_of[place]]
        at = bisect_left(members, place)
        return [*members[max(at - _NEIGHBOURS, 0) : at], *members[at + 1 : at + 1 + _NEIGHBOURS]]

    def places(self, start: int, end: int) -> Sequence[int]:
        """Every place where the same lines stand, ascending."""
        window = next((place for place in range(start, end) if self._class_of[place] != _NO_CLASS), None)
        if window is None:
            return array("I", [start])
        asked = (self._class_of[window], window - start, end - start)
        if asked not in self._contents:
            self._contents[asked] = self._by_content(*asked)
        return self._contents[asked].get(self._content(start, end), array("I", [start]))

    def _by_content(self, number: int, offset: int, lines: int) -> dict[int, array[int]]:
        """For what stands at several places with a window of a class `offset` lines in: these places."""
        found: defaultdict[int, array[int]] = defaultdict(lambda: array("I"))
        for place in self.members[number]:
            if place > offset:
                found[self._content(place - offset, place - offset + lines)].append(place - offset)
        return {content: places for content, places in found.items() if len(places) > 1}

    def _content(self, start: int, end: int) -> int:
        return hash(self.data[_HASH_BYTES * start : _HASH_BYTES * end])

    def equal_after(self, one: int, other: int) -> int:
        """How many lines from two places on are equal."""
        return self._equal(lambda low, high: self._is_equal(one + low, other + low, high - low))

    def equal_before(self, one: int, other: int) -> int:
        """How many lines right before two places are equal."""
        return self._equal(lambda low, high: self._is_equal(one - high, other - high, high - low))

    def _equal(self, is_equal: Callable[[int, int], bool]) -> int:
        """The greatest number of lines so that all are equal: by doubled steps, then halved ones."""
        equal, step = 0, 1
        while is_equal(equal, equal + step):
            equal += step
            step *= 2
        while step > 1:
            step //= 2
            if is_equal(equal, equal + step):
                equal += step
        return equal

    def _is_equal(self, one: int, other: int, lines: int) -> bool:
        size = _HASH_BYTES * lines
        one, other = _HASH_BYTES * one, _HASH_BYTES * other
        return one >= 0 and other >= 0 and self.data[one : one + size] == self.data[other : other + size]


def _spans_by_owner(text: Text, classes: _Classes) -> Iterator[tuple[int, list[Span]]]:
    current, spans = -1, list[Span]()
    for owner, start, end, is_whole in text.stretches():
        if owner != current:
            yield current, spans
            current, spans = owner, []
        told = [(start, end)] if is_whole else _spans(classes, start, end)
        spans += (span for span in told if text.is_big(*span))
    yield current, spans


def _spans(classes: _Classes, start: int, end: int) -> Iterator[Span]:
    """What is repeated in a stretch: runs, or as much of them as does not overlap its copy."""
    reached: dict[int, int] = {}
    for place in compress(range(start, end), memoryview(classes.fresh)[start:end]):
        for other in classes.neighbours(place):
            if reached.get(other - place, 0) >= place + LINES_MIN:
                continue
            first = place - classes.equal_before(place, other)
            last = reached[other - place] = (
                place + LINES_MIN + classes.equal_after(place + LINES_MIN, other + LINES_MIN)
            )
            lines = min(last - first, abs(other - place))
            yield from ((part, part + lines) for part in range(first, last - lines, lines))
            yield last - lines, last


def _cover(spans: Sequence[Span]) -> list[Span]:
    """The fewest spans that cover what all do, each the one that reaches farthest, and the longest of several."""
    chosen: list[Span] = []
    reach, best = 0, (0, 0)
    for span in sorted(spans):
        while span[0] > reach:
            if best[1] > reach:
                chosen.append(best)
                reach = best[1]
            else:
                reach = span[0]
        if span[1] > best[1]:
            best = span
    return [*chosen, best] if best[1] > reach else chosen
