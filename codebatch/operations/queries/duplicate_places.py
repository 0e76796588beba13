"""Completion of duplicate blocks: missing locations are found, and blocks that are parts of longer blocks are joined.

The batch has a `duplicate` record for each location of a block, unless a longer block covers the location. Locations
without a record must be found. Such a location is inside one record of its file, or inside two consecutive records.
These records have at least as many lines as the block. So only files with such records are searched for the code lines
of the block.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from codebatch.errors import ObjectMissing
from codebatch.model.text.quantities import count_text
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.operations.queries.duplicate_blocks import DuplicateBlock, DuplicateLocation, iter_duplicates, make_place
from codebatch.plugins.worker_services import source_services
from codebatch.query.filters.decoding import decode_lines
from codebatch.query.sources.records import BatchRecords

_LINES_MIN = 10
"""Minimum number of code lines of a block (workers/TASKS.md "Duplicates").

A block is searched for by this number of first lines.
"""


_GROUP_DIGITS = 16


class _CodeLines(NamedTuple):
    """The code lines of a file with their line numbers."""

    lines: Sequence[bytes]
    numbers: Sequence[int]

    def block_group(self, start: int, lines: int) -> str:
        """Return the group ID of the block of `lines` code lines that begins at the index `start` in `self.lines`."""
        digest = hashlib.sha256(b"\n".join(self.lines[start : start + lines])).hexdigest()
        return digest[:_GROUP_DIGITS]

    def block_head(self, start: int) -> bytes:
        """Return the first _LINES_MIN code lines from the index `start` on, joined by newlines."""
        return b"\n".join(self.lines[start : start + _LINES_MIN])


class _AnalyzeRecord(msgspec.Struct, gc=False):
    """The fields of a record of the task `analyze` that locate code lines.

    In records of kind `fingerprints`, `comments` locates the file's comments.
    """

    kind: str
    comments: bytes = b""


_decoder = msgspec.json.Decoder(_AnalyzeRecord)


def complete_places(question: BatchQuery, blocks: Sequence[DuplicateBlock]) -> list[DuplicateBlock]:
    """Return the blocks with all their locations, each with its end line.

    If the content of a file is missing, its locations stay as they are in the records, and a note is added. Raises
    StoreCorrupt.
    """
    incomplete = [block for block in blocks if block.copies > len(block.complete_locations)]
    if not incomplete:
        return list(blocks)
    files = _CodeReader(question)
    heads: defaultdict[bytes, list[DuplicateBlock]] = defaultdict(list)
    # The blocks of a file follow each other, so it is read once.
    for block in sorted(incomplete, key=lambda block: block.complete_locations[0].path_bytes):
        first, *_ = block.complete_locations
        code = files.read(first.path_bytes)
        start = bisect_left(code.numbers, first.line)
        if code.block_group(start, block.lines) == block.group:
            heads[code.block_head(start)].append(block)
    new_locations: defaultdict[str, list[DuplicateLocation]] = defaultdict(list)
    for path in _files_with_lines(question.records, min(block.lines for block in incomplete)):
        for block, place in _iter_places(path, files.read(path), heads):
            new_locations[block.group].append(place)
    files.note_unreadable()
    return [_with_places(block, new_locations[block.group]) for block in blocks]


def join_blocks(blocks: Iterable[DuplicateBlock]) -> list[DuplicateBlock]:
    """Join each block with the longest block that contains one of its locations.

    The other locations of the shorter block become locations of the longer one. They keep their own number of lines.
    `blocks` must be sorted by length, longest first, and must have all their locations. The result is numbered from 1.
    """
    joined: list[list[DuplicateLocation]] = []
    firsts: list[DuplicateBlock] = []
    spans: defaultdict[bytes, list[tuple[int, int, int]]] = defaultdict(list)
    for block in blocks:
        span_indexes = [_index_of_span(spans[place.path_bytes], place) for place in block.locations]
        known = [index for index in span_indexes if index is not None]
        if known:
            index = known[0]
            new_places = [
                msgspec.structs.replace(place, lines=block.lines)
                for place, index_found in zip(block.locations, span_indexes, strict=True)
                if index_found is None
            ]
        else:
            index, new_places = len(joined), list(block.locations)
            firsts.append(block)
            joined.append([])
        joined[index] += new_places
        for place in new_places:
            insort(spans[place.path_bytes], (place.line, place.end, index))
    return [
        msgspec.structs.replace(block, number=number, copies=max(block.copies, len(places)), locations=tuple(places))
        for number, (block, places) in enumerate(zip(firsts, joined, strict=True), 1)
    ]


def _index_of_span(spans: Sequence[tuple[int, int, int]], place: DuplicateLocation) -> int | None:
    """Return the index of the first span that contains a location, or None. Spans are sorted by first line.

    A location is also contained if fewer than _LINES_MIN of its lines are outside the span, and at least half are
    inside.
    """
    size = place.end - place.line
    for start, end, index in spans[: bisect_left(spans, (place.end,))]:
        shared = min(end, place.end) - max(start, place.line)
        if size - shared < _LINES_MIN and 2 * shared >= size:
            return index
    return None


class _CodeReader:
    """A reader of the code lines of files. The lines of the last file are cached."""

    def __init__(self, question: BatchQuery) -> None:
        self._question = question
        self._find_code_lines = source_services().file_code_lines
        self._lost = 0
        self._last_read: tuple[bytes, _CodeLines] = (b"", _CodeLines((), ()))

    def read(self, path: bytes) -> _CodeLines:
        """Return the code lines of a file. Return no lines if its content or its fingerprints are missing."""
        if self._last_read[0] != path:
            self._last_read = path, self._read_code_lines(path)
        return self._last_read[1]

    def note_unreadable(self) -> None:
        """Add a note with the number of files that could not be read."""
        if self._lost:
            lost = count_text(self._lost, "file")
            self._question.note(
                f"some locations are unknown: the content of {lost} is missing; check the store with: "
                "codebatch diagnose"
            )

    def _read_code_lines(self, path: bytes) -> _CodeLines:
        records = self._question.records
        entry, item = records.snapshot.entry(path), records.find_items([path]).get(path)
        lines = None if item is None else records.source.item_lines("analyze", item)
        if entry is None or item is None or lines is None:
            return _CodeLines((), ())
        fingerprints = next((record for record in decode_lines(_decoder, lines) if record.kind == "fingerprints"), None)
        if fingerprints is None:
            return _CodeLines((), ())
        try:
            content = records.read_object(entry)
        except ObjectMissing:
            self._lost += 1
            return _CodeLines((), ())
        return _CodeLines(
            *self._find_code_lines(path, content, records.plan.item_contexts(item), fingerprints.comments)
        )


def _files_with_lines(records: BatchRecords, least: int) -> Iterator[bytes]:
    """Yield the files in which one record, or two consecutive records, have at least `least` code lines in total."""
    path, lines, last = b"", 0, b""
    for duplicates in iter_duplicates(records):
        for record in duplicates:
            before = lines if record.path_bytes == path else 0
            path, lines = record.path_bytes, record.lines
            if before + lines >= least and path != last:
                last = path
                yield path


def _iter_places(
    path: bytes, code: _CodeLines, heads: dict[bytes, list[DuplicateBlock]]
) -> Iterator[tuple[DuplicateBlock, DuplicateLocation]]:
    """Yield each block that occurs in a file, with its location there, by first line.

    Occurrences of the same block do not overlap.
    """
    ends: dict[str, int] = {}
    first_lines = {head.partition(b"\n")[0] for head in heads}
    for start in range(len(code.lines) - _LINES_MIN + 1):
        if code.lines[start] not in first_lines:
            continue
        for block in heads.get(code.block_head(start), ()):
            if start >= ends.get(block.group, 0) and code.block_group(start, block.lines) == block.group:
                ends[block.group] = end = start + block.lines
                yield block, make_place(path, code.numbers[start], code.numbers[end - 1] + 1)


def _with_places(block: DuplicateBlock, new_locations: Iterable[DuplicateLocation]) -> DuplicateBlock:
    """Return a block with additional locations.

    A new location that overlaps a recorded location of the block is left out.
    """
    places = {(place.path_bytes, place.line): place for place in block.locations}
    for place in new_locations:
        is_known = any(
            place.path_bytes == other.path_bytes and place.line < other.end and other.line < place.end
            for other in block.complete_locations
        )
        if not is_known:
            places[place.path_bytes, place.line] = place
    return msgspec.structs.replace(block, locations=tuple(places[key] for key in sorted(places)))
