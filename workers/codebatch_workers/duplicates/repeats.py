"""Repeats: maximal sequences of lines that occur at several places of a text. No text takes quadratic time.

A `CodeText` has the hashes of the lines of many files in sequence. A *place* is an index into it. Lines that are
adjacent in one file form a *stretch*. Before and after each stretch there is a separator, a number that occurs only
once. So no repeat extends over the end of a stretch.

A *window* is LINES_MIN lines. Equal windows form a class. If a window overlaps an equal window, it is part of a table
of similar lines. Such a window has no class, because a table does not duplicate itself. From two places of a class,
lines are compared in both directions as long as they are equal. The equal lines are a *run*. If a run overlaps its
copy, it consists of adjacent copies. The length of each copy is the distance of the two places.

Each line of a repeat is in a window with a class. So the runs between each window and the next windows of its class
cover all repeated lines. Two measures limit the time. First, a window is compared with at most _NEIGHBOURS windows of
its class on each side. If the window occurs at more places, the longest run can be missed, but no line is. Second, if
all windows of a class directly follow the windows of another class, both classes have the same runs. So the runs of the
later class are skipped. To compare many lines at once, the hashes at both places are combined by XOR. The first or last
bit that is set shows the first or last line that differs.

The result is a cover of the runs. Among the runs that begin within or directly after the previous repeat, the next
repeat is the run that extends furthest. So each place is in at most two repeats, and there are at most as many repeats
as lines.

Hashes are 64 bits of SipHash. They are only compared for equality within this process, and never determine an order.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, compress, groupby, pairwise, repeat
from operator import sub
from zlib import DEFLATED, compressobj, decompress

import msgspec

from codebatch_workers.duplicates.fingerprints import LINES_MIN

# If LINES_MIN lines have fewer bytes without white space, they are mostly brackets, and are not reported.
REPEATED_BYTES_MIN = 200
_COMPARED_PLACES_MAX = 8
# Code up to this size is stored uncompressed. For a small text, compression would take longer than the whole search.
_UNCOMPRESSED_BYTES_MAX = 16 << 20
# Parameters of zlib. With a window of 32 KiB, the creation of zlib's tables would take ten times as long as the
# compression of a typical stretch.
_FASTEST, _WINDOW_BITS, _MEMORY_LEVEL = 1, 13, 5
_HASH_BYTES = 8
_HASH_BITS = 64
# The number of lines in the first comparison of two places. Each further comparison has twice as many lines.
_LINES_COMPARED = 8
# Approximately this number of values is counted or sorted at once. During this time, each value takes 100 bytes of
# memory.
_VALUES_PER_PART = 2**18

LineSpan = tuple[int, int]


class RepeatedLines(msgspec.Struct, frozen=True):
    """A sequence of lines that occurs at several places.

    `places` are all places at which the sequence begins, ascending. `start` is one of them.
    """

    start: int
    lines: int
    places: Sequence[int]

    @property
    def end(self) -> int:
        """The place after the last line."""
        return self.start + self.lines


class CodeText:
    """The lines of all files as one text, divided into stretches: adjacent lines of one owner.

    An owner is the number of a file.
    """

    def __init__(self) -> None:
        self.hashes = array("q", [0])
        self.numbers = array("I", [0])
        # The code of the stretches takes most memory, and is needed only for repeats. So stretches are compressed once
        # the uncompressed ones have reached a size.
        self._code: list[bytes] = []
        self._uncompressed_bytes = 0
        self._uncompressed = 0
        self._lines: tuple[int, list[bytes]] = (-1, [])
        # The number of bytes before each line, counted from the start of its stretch, without line ends.
        self._bytes_before = array("I", [0])
        self._starts = array("Q")
        self._owners = array("I")
        self._whole = bytearray()

    def add(self, owner: int, lines: Sequence[bytes], numbers: Sequence[int], *, is_whole: bool) -> None:
        """Append a stretch of lines. The stretches of one owner must be adjacent.

        If `is_whole` is set, the owner exists in several copies, so the stretch is a repeat as a whole.
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
        if self._uncompressed_bytes >= _UNCOMPRESSED_BYTES_MAX:
            self._code.append(_compress_text(code))
            return
        self._code.append(code)
        self._uncompressed_bytes += len(code)
        self._uncompressed += 1

    def _stretch_at(self, place: int) -> int:
        return bisect_right(self._starts, place) - 1

    def owner_at(self, place: int) -> int:
        """Return the owner of the line at a place."""
        return self._owners[self._stretch_at(place)]

    def take_hashes(self) -> bytes:
        """Return the hashes of all lines, and free them."""
        data = self.hashes.tobytes()
        del self.hashes[:]
        return data

    def fully_repeated_stretches(self) -> Iterator[LineSpan]:
        """Yield the span of each stretch that was added with `is_whole`, in order."""
        ends = (start - 1 for start in (*self._starts[1:], len(self.numbers)))
        return compress(zip(self._starts, ends, strict=False), self._whole)

    def code_between(self, start: int, end: int) -> bytes:
        """Return the lines between two places of a stretch, joined by LF. Code of the last used stretch is cached."""
        stretch = self._stretch_at(start)
        if self._lines[0] != stretch:
            stored = self._code[stretch]
            self._lines = (stretch, (stored if stretch < self._uncompressed else decompress(stored)).split(b"\n"))
        first = self._starts[stretch]
        return b"\n".join(self._lines[1][start - first : end - first])

    def is_big(self, span: LineSpan) -> bool:
        """Return whether the lines in a span have at least BYTES_MIN bytes. The span must be within a stretch."""
        start, end = span
        return self._bytes_before[end] - self._bytes_before[start] >= REPEATED_BYTES_MIN


def maximal_repeats(text: CodeText) -> Iterator[tuple[int, list[RepeatedLines]]]:
    """Yield each owner that has repeats, in order, with its repeats by place.

    All stretches must have been added to the text. This can be called only once for a text, because it frees the
    hashes.
    """
    classes = _WindowClasses(text.take_hashes())
    spans = {*text.fully_repeated_stretches(), *_repeated_spans(classes)}
    for owner, chosen in groupby(_minimal_cover(filter(text.is_big, spans)), key=lambda span: text.owner_at(span[0])):
        yield owner, [RepeatedLines(start, end - start, classes.places_of_lines(start, end)) for start, end in chosen]


def _compress_text(text: bytes) -> bytes:
    compressor = compressobj(_FASTEST, DEFLATED, _WINDOW_BITS, _MEMORY_LEVEL)
    return compressor.compress(text) + compressor.flush()


def mark_repeated_values(values: array[int]) -> bytes:
    """Return one byte for each value: 1 if the value occurs several times in `values`, otherwise 0."""
    parts, part_of = _split_values(values)
    if parts == 1:
        return _mark_repeated(values)
    marks = [
        iter(_mark_repeated(array(values.typecode, compress(values, _mark_values_in(part, part_of)))))
        for part in range(parts)
    ]
    return bytes(map(next, map(marks.__getitem__, part_of)))


def _mark_repeated(values: array[int]) -> bytes:
    repeated_values = {value for value, times in Counter(values).items() if times > 1}
    return bytes(map(repeated_values.__contains__, values))


def _split_values(values: array[int]) -> tuple[int, bytes]:
    """Divide hashes into parts that are processed one after the other, to limit memory.

    Return the number of parts, and one byte for each hash: the number of its part. Equal hashes are in the same part.
    """
    parts = min(len(values) // _VALUES_PER_PART + 1, 256)
    byte = memoryview(values).cast("B")[:: values.itemsize].tobytes()
    return parts, byte.translate(bytes(value % parts for value in range(256)))


def _mark_values_in(part: int, stretch: bytes) -> bytes:
    return stretch.translate(bytes(value == part for value in range(256)))


def _group_places(values: Iterable[int], places: Iterable[int]) -> Iterable[Sequence[int]]:
    """Return the places of each value, ascending."""
    groups: defaultdict[int, list[int]] = defaultdict(list)
    deque(map(list.append, map(groups.__getitem__, values), places), maxlen=0)
    return groups.values()


def _has_near_places(places: Sequence[int]) -> bool:
    """Return whether windows at two consecutive places overlap."""
    return len(places) > 2 and min(map(sub, places[1:], places)) < LINES_MIN


class _WindowClasses:
    """The classes of equal windows.

    Classes are numbered from 1; class 0 means that a window has no class. The members of each class are stored in
    sequence, ascending.
    """

    def __init__(self, hashes: bytes) -> None:
        self._data = hashes
        self._class_of = array("I")
        self._members = array("I")
        self._ends = array("I", [0])
        self._find_members(self._window_hashes(len(hashes) // _HASH_BYTES - LINES_MIN + 1))
        self._contents: dict[tuple[int, int, int], dict[int, array[int]]] = {}

    def _window_hashes(self, windows: int) -> array[int]:
        step, size = _HASH_BYTES, _HASH_BYTES * LINES_MIN
        begins, ends = range(0, step * windows, step), range(size, size + step * windows, step)
        return array("q", map(hash, map(self._data.__getitem__, map(slice, begins, ends))))

    def _find_members(self, windows: array[int]) -> None:
        self._class_of.frombytes(bytes(self._class_of.itemsize * len(windows)))
        is_repeated = mark_repeated_values(windows)
        places = array("I", compress(range(len(windows)), is_repeated))
        repeated_windows = array("q", compress(windows, is_repeated))
        parts, part_of = _split_values(repeated_windows)
        for part in range(parts):
            marks = _mark_values_in(part, part_of)
            self._add_classes(_group_places(compress(repeated_windows, marks), compress(places, marks)))

    def _add_classes(self, groups: Iterable[Sequence[int]]) -> None:
        """Add a class for each group of places of equal windows, unless the windows are part of a table."""
        classes = [places for places in groups if places[1] - places[0] >= LINES_MIN and not _has_near_places(places)]
        numbers = range(len(self._ends), len(self._ends) + len(classes))
        # All loops over places run in C, because there are as many places as lines.
        for_each_place = map(
            self._class_of.__setitem__,
            chain.from_iterable(classes),
            chain.from_iterable(map(repeat, numbers, map(len, classes))),
        )
        deque(for_each_place, maxlen=0)
        self._ends.extend(
            accumulate(map(len, classes[1:]), initial=len(self._members) + len(classes[0])) if classes else ()
        )
        self._members.extend(chain.from_iterable(classes))

    def _class_members(self, number: int) -> Sequence[int]:
        return self._members[self._ends[number - 1] : self._ends[number]] if number else ()

    def iter_unexamined_places(self) -> Iterator[int]:
        """Yield the places of all windows whose runs must be computed, ascending.

        A class is skipped if each of its windows directly follows a window of one other class, because the runs are the
        same.
        """
        is_unexamined = bytearray(len(self._class_of))
        before = list(map(self._class_of.__getitem__, map(sub, self._members, repeat(1))))
        sizes = [0, *map(sub, self._ends[1:], self._ends)]
        for start, end in pairwise(self._ends):
            # If all places before the members are in one class of the same size, they are all members of that class.
            if sizes[before[start]] != end - start or before[start:end].count(before[start]) != end - start:
                for place in self._members[start:end]:
                    is_unexamined[place] = True
        return compress(range(len(is_unexamined)), is_unexamined)

    def next_places(self, place: int) -> Sequence[int]:
        """Return the next places, at most _NEIGHBOURS, of windows that equal the window at `place`."""
        number = self._class_of[place]
        end = self._ends[number]
        index = bisect_right(self._members, place, self._ends[number - 1], end)
        return self._members[index : min(index + _COMPARED_PLACES_MAX, end)]

    def places_of_lines(self, start: int, end: int) -> Sequence[int]:
        """Return all places at which the lines [start, end) occur, ascending."""
        numbers = enumerate(self._class_of[start:end])
        offset, number = next((pair for pair in numbers if pair[1]), (0, 0))
        if not number:
            return [start]
        key = (number, offset, end - start)
        if key not in self._contents:
            self._contents[key] = self._group_by_content(*key)
        return self._contents[key].get(self._content_hash(start, end), [start])

    def _group_by_content(self, number: int, offset: int, lines: int) -> dict[int, array[int]]:
        """Map each repeated content to the places at which it begins.

        The contents are sequences of `lines` lines that contain a window of class `number` after their first `offset`
        lines.
        """
        places_by_content: defaultdict[int, list[int]] = defaultdict(list)
        for place in self._class_members(number):
            if place > offset:
                places_by_content[self._content_hash(place - offset, place - offset + lines)].append(place - offset)
        return {content: array("I", places) for content, places in places_by_content.items() if len(places) > 1}

    def _content_hash(self, start: int, end: int) -> int:
        return hash(self._data[_HASH_BYTES * start : _HASH_BYTES * end])

    def run(self, first: int, second: int) -> LineSpan:
        """Return the longest span around the place `first` whose lines equal those around the place `second`.

        The windows at both places must be equal.
        """
        return first - self._equal_before(first, second), first + self._equal_after(first, second)

    def _equal_after(self, first: int, second: int) -> int:
        equal, lines = LINES_MIN, _LINES_COMPARED
        while not (differing := self._hash_difference(first + equal, second + equal, lines)):
            equal, lines = equal + lines, 2 * lines
        lowest_bit = (differing & -differing).bit_length() - 1
        return equal + lowest_bit // _HASH_BITS

    def _equal_before(self, first: int, second: int) -> int:
        equal, lines = 0, min(_LINES_COMPARED, first)
        while not (differing := self._hash_difference(first - equal - lines, second - equal - lines, lines)):
            equal, lines = equal + lines, min(2 * lines, first - equal - lines)
        highest_bit = differing.bit_length() - 1
        return equal + lines - 1 - highest_bit // _HASH_BITS

    def _hash_difference(self, first: int, second: int, lines: int) -> int:
        """Return the XOR of the hashes of `lines` lines from two places.

        The hash of the first line is in the lowest bits. The result is 0 if all lines are equal. If either place
        reaches the end of its stretch, the result is not 0, because a separator equals nothing else.
        """
        size = _HASH_BYTES * lines
        first, second = _HASH_BYTES * first, _HASH_BYTES * second
        return int.from_bytes(self._data[first : first + size], "little") ^ int.from_bytes(
            self._data[second : second + size], "little"
        )


def _repeated_spans(classes: _WindowClasses) -> Iterator[LineSpan]:
    """Yield spans that are repeated. A span can be yielded several times.

    Each span is a run. If a run overlaps its copy, the spans are instead the adjacent copies that the run consists of.
    """
    ends: dict[int, int] = {}
    last_end = 0
    for place in classes.iter_unexamined_places():
        if place >= last_end:
            ends.clear()
        for second in classes.next_places(place):
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


def _minimal_cover(spans: Iterable[LineSpan]) -> list[LineSpan]:
    """Return a minimal set of the given spans that covers all their lines, ascending.

    Each next span is the one that extends furthest. If several extend equally far, the longest one is chosen.
    """
    chosen: list[LineSpan] = []
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
