"""Repeats: stretches of lines that stand at several places of a text, in time that no text makes quadratic.

A `CodeText` is the hashes of the lines of many files, one after the other. A *place* is an index of it. A separator, a
number that occurs once, stands before and after each stretch: nothing that is equal at two places reaches across.

A *window* is LINES_MIN lines; equal windows form a class. A window that overlaps its equal is part of a table, say of
like lines, and has no class: a table is no copy of itself. Two places of a class are extended to both sides as far as
they are equal: a *run*. Where a run overlaps its copy, it is a row of copies of as many lines as lie between the two.

Whatever line of a repeat is taken, it lies in a window with a class, so that the runs of each window with the next ones
of its class cover every line that is repeated. Two things keep that cheap. A window meets _NEIGHBOURS of its class on
each side and no more, so that the longest run of one that stands at more places may be missed, but no line. And where
the windows of a class stand, all of them, behind those of another one, their runs are those of that other. How far two
places are equal is told by the first bit in which all that is behind them differs, or the last of what is before them.

What is told is a cover of the runs: each repeat is the one that reaches farthest of those that begin in or right behind
the one before. So a place lies in two repeats at most, and there are no more of them than lines.

Hashes are 64 bits of SipHash, for equality in this process only: nothing is ordered by them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, compress, groupby, pairwise
from zlib import DEFLATED, compressobj, decompress

import msgspec

from codebatch_workers.duplicates.fingerprints import LINES_MIN

# Ten lines with less in them are brackets and the like. White space is not counted.
BYTES_MIN = 200
_NEIGHBOURS = 8
# So much text is held as it is before the rest is compressed, which costs more than all else of a small one.
_PLAIN_BYTES = 16 << 20
# Of zlib: to make its tables for 32 KiB takes ten times as long as most stretches do.
_FASTEST, _WINDOW_BITS, _MEMORY_LEVEL = 1, 13, 5
_HASH_BYTES = 8
_HASH_BITS = 64
# So many lines are compared at first.
_LINES_COMPARED = 8
# About so many values are counted or sorted at a time, each of which takes 100 bytes of memory meanwhile.
_VALUES_AT_A_TIME = 2**18

Span = tuple[int, int]


class Repeat(msgspec.Struct, frozen=True):
    """`lines` lines at a place, and all the places where they stand, ascending, itself included."""

    start: int
    lines: int
    places: Sequence[int]

    @property
    def end(self) -> int:
        """The place behind its last line."""
        return self.start + self.lines


class CodeText:
    """Stretches of code lines, each with the number that its owner was given."""

    def __init__(self) -> None:
        self.hashes = array("q", [0])
        self.numbers = array("I", [0])
        # Of each stretch its lines: they are by far the most of it, and asked for at its repeats alone. Those of a big
        # text are compressed from some stretch on.
        self._code: list[bytes] = []
        self._plain_bytes = 0
        self._plain = 0
        self._lines: tuple[int, list[bytes]] = (-1, [])
        # From the start of the stretch; line ends are not counted.
        self._bytes_before = array("I", [0])
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
        self._hold(b"\n".join(lines))
        self._bytes_before.extend(accumulate(map(len, lines), initial=0))

    def _hold(self, code: bytes) -> None:
        if self._plain_bytes >= _PLAIN_BYTES:
            self._code.append(_compressed(code))
            return
        self._code.append(code)
        self._plain_bytes += len(code)
        self._plain += 1

    def _stretch(self, place: int) -> int:
        return bisect_right(self._starts, place) - 1

    def owner(self, place: int) -> int:
        """Whose line stands at a place."""
        return self._owners[self._stretch(place)]

    def take_hashes(self) -> bytes:
        """The hashes of all lines, which are held here no longer."""
        taken = self.hashes.tobytes()
        del self.hashes[:]
        return taken

    def wholes(self) -> Iterator[Span]:
        """The stretches that are repeated as such, in order."""
        ends = (start - 1 for start in (*self._starts[1:], len(self.numbers)))
        return compress(zip(self._starts, ends, strict=False), self._whole)

    def code(self, start: int, end: int) -> bytes:
        """The lines between two places of a stretch, joined by LF. Of the stretch asked about last it is soon told."""
        stretch = self._stretch(start)
        if self._lines[0] != stretch:
            held = self._code[stretch]
            self._lines = (stretch, (held if stretch < self._plain else decompress(held)).split(b"\n"))
        first = self._starts[stretch]
        return b"\n".join(self._lines[1][start - first : end - first])

    def is_big(self, span: Span) -> bool:
        """Whether there is enough in the lines between two places of a stretch."""
        start, end = span
        return self._bytes_before[end] - self._bytes_before[start] >= BYTES_MIN


def maximal_repeats(text: CodeText) -> Iterator[tuple[int, list[Repeat]]]:
    """The repeats of each owner that has any, by place; owners in their order. The text is complete, and asked once."""
    classes = _Classes(text.take_hashes())
    spans = {*text.wholes(), *_runs(classes)}
    for owner, chosen in groupby(_cover(filter(text.is_big, spans)), key=lambda span: text.owner(span[0])):
        yield owner, [Repeat(start, end - start, classes.places(start, end)) for start, end in chosen]


def _compressed(text: bytes) -> bytes:
    compressor = compressobj(_FASTEST, DEFLATED, _WINDOW_BITS, _MEMORY_LEVEL)
    return compressor.compress(text) + compressor.flush()


def repeated(values: array[int]) -> bytes:
    """For each of some hashes 1 where it occurs more than once, else 0."""
    parts, part_of = _parts(values)
    if parts == 1:
        return _repeated(values)
    marks = [iter(_repeated(array(values.typecode, compress(values, _is_in(part, part_of))))) for part in range(parts)]
    return bytes(map(next, map(marks.__getitem__, part_of)))


def _repeated(values: array[int]) -> bytes:
    several = {value for value, times in Counter(values).items() if times > 1}
    return bytes(map(several.__contains__, values))


def _parts(values: array[int]) -> tuple[int, bytes]:
    """How many parts to take hashes in, so that equal ones are in one, and in which each is: a byte of it says."""
    parts = min(len(values) // _VALUES_AT_A_TIME + 1, 256)
    byte = memoryview(values).cast("B")[:: values.itemsize].tobytes()
    return parts, byte.translate(bytes(each % parts for each in range(256)))


def _is_in(part: int, part_of: bytes) -> bytes:
    return part_of.translate(bytes(each == part for each in range(256)))


class _Classes:
    """Which windows are equal.

    Classes are numbered from 1; a window without one is of class 0. All members of a class stand together, ascending.
    """

    def __init__(self, hashes: bytes) -> None:
        self._data = hashes
        self._class_of = array("I")
        self._members = array("I")
        self._ends = array("I", [0])
        self._find_members(self._hashes_of_windows(len(hashes) // _HASH_BYTES - LINES_MIN + 1))
        self._contents: dict[tuple[int, int, int], dict[int, array[int]]] = {}

    def _hashes_of_windows(self, windows: int) -> array[int]:
        step, size = _HASH_BYTES, _HASH_BYTES * LINES_MIN
        begins, ends = range(0, step * windows, step), range(size, size + step * windows, step)
        return array("q", map(hash, map(self._data.__getitem__, map(slice, begins, ends))))

    def _find_members(self, windows: array[int]) -> None:
        self._class_of.frombytes(bytes(self._class_of.itemsize * len(windows)))
        is_repeated = repeated(windows)
        places = array("I", compress(range(len(windows)), is_repeated))
        parts, part_of = _parts(array("q", compress(windows, is_repeated)))
        for part in range(parts):
            some = sorted(compress(places, _is_in(part, part_of)), key=windows.__getitem__)
            for _, members in groupby(some, windows.__getitem__):
                self._add(list(members))

    def _add(self, members: Sequence[int]) -> None:
        """Make a class of equal windows, unless they are of a table."""
        if any(place - before < LINES_MIN for before, place in pairwise(members)):
            return
        number = len(self._ends)
        self._members.extend(members)
        self._ends.append(len(self._members))
        for place in members:
            self._class_of[place] = number

    def _members_of(self, number: int) -> Sequence[int]:
        return self._members[self._ends[number - 1] : self._ends[number]] if number else ()

    def fresh(self) -> Iterator[int]:
        """The places of windows whose runs are to be looked at, ascending."""
        is_fresh = bytearray(len(self._class_of))
        for number in range(1, len(self._ends)):
            members = self._members_of(number)
            before = self._members_of(self._class_of[members[0] - 1])
            if len(before) != len(members) or any(place - one != 1 for one, place in zip(before, members, strict=True)):
                for place in members:
                    is_fresh[place] = True
        return compress(range(len(is_fresh)), is_fresh)

    def later(self, place: int) -> Sequence[int]:
        """The next places of the same class."""
        number = self._class_of[place]
        end = self._ends[number]
        at = bisect_right(self._members, place, self._ends[number - 1], end)
        return self._members[at : min(at + _NEIGHBOURS, end)]

    def places(self, start: int, end: int) -> Sequence[int]:
        """Every place where the same lines stand, ascending."""
        numbers = enumerate(self._class_of[start:end])
        offset, number = next((pair for pair in numbers if pair[1]), (0, 0))
        if not number:
            return [start]
        asked = (number, offset, end - start)
        if asked not in self._contents:
            self._contents[asked] = self._by_content(*asked)
        return self._contents[asked].get(self._content(start, end), [start])

    def _by_content(self, number: int, offset: int, lines: int) -> dict[int, array[int]]:
        """For what stands at several places with a window of this class `offset` lines in: these places."""
        found: defaultdict[int, list[int]] = defaultdict(list)
        for place in self._members_of(number):
            if place > offset:
                found[self._content(place - offset, place - offset + lines)].append(place - offset)
        return {content: array("I", places) for content, places in found.items() if len(places) > 1}

    def _content(self, start: int, end: int) -> int:
        return hash(self._data[_HASH_BYTES * start : _HASH_BYTES * end])

    def run(self, one: int, other: int) -> Span:
        """The lines around a window that are equal to those around a later one of its class."""
        return one - self._equal_before(one, other), one + self._equal_after(one, other)

    def _equal_after(self, one: int, other: int) -> int:
        equal, lines = LINES_MIN, _LINES_COMPARED
        while not (differing := self._difference(one + equal, other + equal, lines)):
            equal, lines = equal + lines, 2 * lines
        lowest_bit = (differing & -differing).bit_length() - 1
        return equal + lowest_bit // _HASH_BITS

    def _equal_before(self, one: int, other: int) -> int:
        equal, lines = 0, min(_LINES_COMPARED, one)
        while not (differing := self._difference(one - equal - lines, other - equal - lines, lines)):
            equal, lines = equal + lines, min(2 * lines, one - equal - lines)
        highest_bit = differing.bit_length() - 1
        return equal + lines - 1 - highest_bit // _HASH_BITS

    def _difference(self, one: int, other: int, lines: int) -> int:
        """A number whose lowest bits are of the first line, 0 where some lines from two places on are equal.

        They are not where one of the two is behind its stretch: no separator is equal to anything.
        """
        size = _HASH_BYTES * lines
        one, other = _HASH_BYTES * one, _HASH_BYTES * other
        return int.from_bytes(self._data[one : one + size], "little") ^ int.from_bytes(
            self._data[other : other + size], "little"
        )


def _runs(classes: _Classes) -> Iterator[Span]:
    """What is repeated: runs, or as much of them as does not overlap its copy. Some several times."""
    ends: dict[int, int] = {}
    last_end = 0
    for place in classes.fresh():
        if place >= last_end:
            ends.clear()
        for other in classes.later(place):
            distance = other - place
            if ends.get(distance, 0) >= place + LINES_MIN:
                continue
            start, end = classes.run(place, other)
            ends[distance] = end
            last_end = max(last_end, end)
            lines = min(end - start, distance)
            for part in (*range(start, end - lines, lines), end - lines):
                yield part, part + lines
                yield part + distance, part + distance + lines


def _cover(spans: Iterable[Span]) -> list[Span]:
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
