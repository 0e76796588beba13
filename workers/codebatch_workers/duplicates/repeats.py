"""Repeats: maximal sequences of lines that occur at several places of a text. No text needs quadratic time.

A `CodeText` contains the hashes of the lines of many files in sequence. A *place* is an index into it. A separator, a
number that occurs once, precedes and follows each stretch. So no repeat extends over the end of a stretch.

A *window* is LINES_MIN lines. Equal windows form a class. A window that overlaps an equal window is part of a table of
similar lines and has no class, because a table does not duplicate itself. Two places of a class are extended in both
directions as far as lines are equal: this is a *run*. If a run overlaps its copy, it consists of adjacent copies, each
as long as the distance of the two places.

Each line of a repeat lies in a window with a class. So the runs between each window and the next windows of its class
cover all repeated lines. Two measures limit the time. First, a window is compared with at most _NEIGHBOURS windows of
its class on each side. If it occurs at more places, the longest run may be missed, but no line is. Second, if all
windows of a class directly follow the windows of another class, their runs are the same and are skipped. The length of
equality is found from the first or last differing bit.

The result is a cover of the runs: each repeat is the one that extends furthest among those that begin within or
directly after the previous one. So each place is in at most two repeats, and there are at most as many repeats as
lines.

Hashes are 64 bits of SipHash. They are used only for equality within this process, never for order.
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

# Ten lines with fewer characters are mostly brackets. White space is not counted.
BYTES_MIN = 200
_NEIGHBOURS = 8
# The size of code that is stored uncompressed. Compression costs more than all other work on a small text.
_PLAIN_BYTES = 16 << 20
# Parameters of zlib. Creating tables for 32 KiB takes ten times as long as compressing most stretches.
_FASTEST, _WINDOW_BITS, _MEMORY_LEVEL = 1, 13, 5
_HASH_BYTES = 8
_HASH_BITS = 64
# The number of lines in the first comparison; it doubles with each further one.
_LINES_COMPARED = 8
# The approximate number of values that are counted or sorted at once. Each takes 100 bytes of memory meanwhile.
_VALUES_AT_A_TIME = 2**18

Span = tuple[int, int]


class Repeat(msgspec.Struct, frozen=True):
    """A sequence of `lines` lines, and all places where it occurs, ascending, including `start`."""

    start: int
    lines: int
    places: Sequence[int]

    @property
    def end(self) -> int:
        """The place after the last line."""
        return self.start + self.lines


class CodeText:
    """Stretches of code lines, each with the number of its owner."""

    def __init__(self) -> None:
        self.hashes = array("q", [0])
        self.numbers = array("I", [0])
        # The code of each stretch. It is the largest part and needed only for repeats. In a large text, stretches after
        # the first ones are compressed.
        self._code: list[bytes] = []
        self._uncompressed_bytes = 0
        self._uncompressed = 0
        self._lines: tuple[int, list[bytes]] = (-1, [])
        # Bytes since the start of the stretch, without line ends.
        self._bytes_before = array("I", [0])
        self._starts = array("Q")
        self._owners = array("I")
        self._whole = bytearray()

    def add(self, owner: int, lines: Sequence[bytes], numbers: Sequence[int], *, is_whole: bool) -> None:
        """Append a stretch.

        If `is_whole` is set, it is a repeat as a whole, because its owner exists in several copies.

        The stretches of an owner must be adjacent.
        """
        self._starts.append(len(self.hashes))
        self._owners.append(owner)
        self._whole.append(is_whole)
        self.hashes.extend(map(hash, lines))
        self.hashes.append(len(self._starts))
        self.numbers.extend(numbers)
        self.numbers.append(0)
        self._store_code(b"\n".join(lines))
        self._bytes_before.extend(accumulate(map(len, lines), initial=0))

    def _store_code(self, code: bytes) -> None:
        if self._uncompressed_bytes >= _PLAIN_BYTES:
            self._code.append(_compress(code))
            return
        self._code.append(code)
        self._uncompressed_bytes += len(code)
        self._uncompressed += 1

    def _stretch(self, place: int) -> int:
        return bisect_right(self._starts, place) - 1

    def owner(self, place: int) -> int:
        """Return the owner of the line at a place."""
        return self._owners[self._stretch(place)]

    def take_hashes(self) -> bytes:
        """Return the hashes of all lines, and free them."""
        data = self.hashes.tobytes()
        del self.hashes[:]
        return data

    def wholes(self) -> Iterator[Span]:
        """Yield the stretches that are repeats as a whole, in order."""
        ends = (start - 1 for start in (*self._starts[1:], len(self.numbers)))
        return compress(zip(self._starts, ends, strict=False), self._whole)

    def code(self, start: int, end: int) -> bytes:
        """Return the lines between two places of a stretch, joined by LF. The last stretch is cached."""
        stretch = self._stretch(start)
        if self._lines[0] != stretch:
            stored = self._code[stretch]
            self._lines = (stretch, (stored if stretch < self._uncompressed else decompress(stored)).split(b"\n"))
        first = self._starts[stretch]
        return b"\n".join(self._lines[1][start - first : end - first])

    def is_big(self, span: Span) -> bool:
        """Return whether the lines between two places of a stretch have at least BYTES_MIN bytes."""
        start, end = span
        return self._bytes_before[end] - self._bytes_before[start] >= BYTES_MIN


def maximal_repeats(text: CodeText) -> Iterator[tuple[int, list[Repeat]]]:
    """Yield the repeats of each owner that has any, by place. Owners are in order.

    The text must be complete. This function can be called once for it.
    """
    classes = _Classes(text.take_hashes())
    spans = {*text.wholes(), *_runs(classes)}
    for owner, chosen in groupby(_cover(filter(text.is_big, spans)), key=lambda span: text.owner(span[0])):
        yield owner, [Repeat(start, end - start, classes.places(start, end)) for start, end in chosen]


def _compress(text: bytes) -> bytes:
    compressor = compressobj(_FASTEST, DEFLATED, _WINDOW_BITS, _MEMORY_LEVEL)
    return compressor.compress(text) + compressor.flush()


def repeated(values: array[int]) -> bytes:
    """Return for each hash 1 if it occurs more than once, otherwise 0."""
    parts, part_of = _parts(values)
    if parts == 1:
        return _mark_repeated(values)
    marks = [
        iter(_mark_repeated(array(values.typecode, compress(values, _is_in(part, part_of))))) for part in range(parts)
    ]
    return bytes(map(next, map(marks.__getitem__, part_of)))


def _mark_repeated(values: array[int]) -> bytes:
    repeated_values = {value for value, times in Counter(values).items() if times > 1}
    return bytes(map(repeated_values.__contains__, values))


def _parts(values: array[int]) -> tuple[int, bytes]:
    """Return the number of parts in which to process hashes, and the part of each.

    Equal hashes are in the same part.
    """
    parts = min(len(values) // _VALUES_AT_A_TIME + 1, 256)
    byte = memoryview(values).cast("B")[:: values.itemsize].tobytes()
    return parts, byte.translate(bytes(value % parts for value in range(256)))


def _is_in(part: int, part_of: bytes) -> bytes:
    return part_of.translate(bytes(value == part for value in range(256)))


class _Classes:
    """The classes of equal windows.

    Classes are numbered from 1. A window without a class has class 0. The members of a class are stored in sequence,
    ascending.
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
            sorted_places = sorted(compress(places, _is_in(part, part_of)), key=windows.__getitem__)
            for _, members in groupby(sorted_places, windows.__getitem__):
                self._add_class(list(members))

    def _add_class(self, members: Sequence[int]) -> None:
        """Create a class of equal windows, unless they belong to a table."""
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
        """Yield the places of windows whose runs must be examined, ascending."""
        is_fresh = bytearray(len(self._class_of))
        for number in range(1, len(self._ends)):
            members = self._members_of(number)
            before = self._members_of(self._class_of[members[0] - 1])
            if len(before) != len(members) or any(
                place - first != 1 for first, place in zip(before, members, strict=True)
            ):
                for place in members:
                    is_fresh[place] = True
        return compress(range(len(is_fresh)), is_fresh)

    def later(self, place: int) -> Sequence[int]:
        """Return the next places of the same class."""
        number = self._class_of[place]
        end = self._ends[number]
        index = bisect_right(self._members, place, self._ends[number - 1], end)
        return self._members[index : min(index + _NEIGHBOURS, end)]

    def places(self, start: int, end: int) -> Sequence[int]:
        """Return every place where the same lines occur, ascending."""
        numbers = enumerate(self._class_of[start:end])
        offset, number = next((pair for pair in numbers if pair[1]), (0, 0))
        if not number:
            return [start]
        key = (number, offset, end - start)
        if key not in self._contents:
            self._contents[key] = self._group_by_content(*key)
        return self._contents[key].get(self._content(start, end), [start])

    def _group_by_content(self, number: int, offset: int, lines: int) -> dict[int, array[int]]:
        """Map each content that occurs several times, with a window of a class at `offset` lines, to its places."""
        places_by_content: defaultdict[int, list[int]] = defaultdict(list)
        for place in self._members_of(number):
            if place > offset:
                places_by_content[self._content(place - offset, place - offset + lines)].append(place - offset)
        return {content: array("I", places) for content, places in places_by_content.items() if len(places) > 1}

    def _content(self, start: int, end: int) -> int:
        return hash(self._data[_HASH_BYTES * start : _HASH_BYTES * end])

    def run(self, first: int, second: int) -> Span:
        """Return the span around a window whose lines equal those around a later window of its class."""
        return first - self._equal_before(first, second), first + self._equal_after(first, second)

    def _equal_after(self, first: int, second: int) -> int:
        equal, lines = LINES_MIN, _LINES_COMPARED
        while not (differing := self._difference(first + equal, second + equal, lines)):
            equal, lines = equal + lines, 2 * lines
        lowest_bit = (differing & -differing).bit_length() - 1
        return equal + lowest_bit // _HASH_BITS

    def _equal_before(self, first: int, second: int) -> int:
        equal, lines = 0, min(_LINES_COMPARED, first)
        while not (differing := self._difference(first - equal - lines, second - equal - lines, lines)):
            equal, lines = equal + lines, min(2 * lines, first - equal - lines)
        highest_bit = differing.bit_length() - 1
        return equal + lines - 1 - highest_bit // _HASH_BITS

    def _difference(self, first: int, second: int, lines: int) -> int:
        """Return the XOR of some lines from two places, with the first line in the lowest bits.

        It is 0 if all lines are equal.

        If one of the places reaches the end of its stretch, the result is not 0, because a separator equals no other
        line.
        """
        size = _HASH_BYTES * lines
        first, second = _HASH_BYTES * first, _HASH_BYTES * second
        return int.from_bytes(self._data[first : first + size], "little") ^ int.from_bytes(
            self._data[second : second + size], "little"
        )


def _runs(classes: _Classes) -> Iterator[Span]:
    """Yield repeated spans: runs, or their parts that do not overlap their copy. Some are yielded several times."""
    ends: dict[int, int] = {}
    last_end = 0
    for place in classes.fresh():
        if place >= last_end:
            ends.clear()
        for second in classes.later(place):
            distance = second - place
            if ends.get(distance, 0) >= place + LINES_MIN:
                continue
            start, end = classes.run(place, second)
            ends[distance] = end
            last_end = max(last_end, end)
            lines = min(end - start, distance)
            for part in (*range(start, end - lines, lines), end - lines):
                yield part, part + lines
                yield part + distance, part + distance + lines


def _cover(spans: Iterable[Span]) -> list[Span]:
    """Return the fewest spans that cover the same lines as all spans.

    Each extends furthest; of several, the longest is taken.
    """
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
