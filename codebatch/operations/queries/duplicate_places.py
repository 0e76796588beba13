"""All places of copied blocks, and blocks that are parts of longer ones.

A `duplicate` record begins at a place unless longer blocks cover the place: so a block may stand at places that no
record names. Such a place lies in one record of its file, or in two consecutive ones that have as many lines together.
The files with such records are searched for the code lines of the block.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, cast

import msgspec

from codebatch.errors import ObjectMissing
from codebatch.model.text.quantities import count_of
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.operations.queries.duplicate_blocks import DuplicateBlock, DuplicateLocation, iter_duplicates, make_place
from codebatch.plugins.worker_services import load_question
from codebatch.protocol.launch import SOURCE_MODULE
from codebatch.query.filters.decoding import decode_lines
from codebatch.query.sources.records import BatchRecords

_LINES_MIN = 10
"""Code lines of a block (workers/TASKS.md "Duplicates"): by the first of them a block is looked for."""


_GROUP_DIGITS = 16


class _CodeLines(NamedTuple):
    """The code lines of a file, and the number of each."""

    lines: Sequence[bytes]
    numbers: Sequence[int]

    def group(self, start: int, lines: int) -> str:
        """Return the group of the block of so many code lines that begins at an index."""
        digest = hashlib.sha256(b"\n".join(self.lines[start : start + lines])).hexdigest()
        return digest[:_GROUP_DIGITS]

    def head(self, start: int) -> bytes:
        """Return the first code lines of a block that begins at an index, joined."""
        return b"\n".join(self.lines[start : start + _LINES_MIN])


class _Analyzed(msgspec.Struct, gc=False):
    """Part of a record of `analyze`: that of kind `fingerprints` has where the comments of its file are."""

    kind: str
    comments: bytes = b""


_decoder = msgspec.json.Decoder(_Analyzed)


def complete_places(question: BatchQuery, blocks: Sequence[DuplicateBlock]) -> list[DuplicateBlock]:
    """Return the blocks with all their places, each with its end.

    If the content of a file is lost, its places stay as the records have them, and a note says so. Raises StoreCorrupt.
    """
    wanted = [block for block in blocks if block.copies > len(block.whole_places)]
    if not wanted:
        return list(blocks)
    files = _CodeReader(question)
    heads: defaultdict[bytes, list[DuplicateBlock]] = defaultdict(list)
    for block in wanted:
        first, *_ = block.whole_places
        code = files.read(first.path_bytes)
        start = bisect_left(code.numbers, first.line)
        if code.group(start, block.lines) == block.group:
            heads[code.head(start)].append(block)
    found: defaultdict[str, list[DuplicateLocation]] = defaultdict(list)
    for path in _files_with_lines(question.records, min(block.lines for block in wanted)):
        for block, place in _iter_places(path, files.read(path), heads):
            found[block.group].append(place)
    files.note_lost()
    return [_with_places(block, found[block.group]) for block in blocks]


def join_blocks(blocks: Iterable[DuplicateBlock]) -> list[DuplicateBlock]:
    """Join each block with the first one that it is a part of: a place of the block lies within one of the other.

    The places of the part that lie elsewhere become places of the other, with their own number of lines. `blocks` come
    the longest first, with all their places; what is returned is numbered from 1.
    """
    joined: list[list[DuplicateLocation]] = []
    firsts: list[DuplicateBlock] = []
    spans: defaultdict[bytes, list[tuple[int, int, int]]] = defaultdict(list)
    for block in blocks:
        within = [_index_of_span(spans[place.path_bytes], place) for place in block.locations]
        known = [index for index in within if index is not None]
        if known:
            index = known[0]
            new = [
                msgspec.structs.replace(place, lines=block.lines)
                for place, found in zip(block.locations, within, strict=True)
                if found is None
            ]
        else:
            index, new = len(joined), list(block.locations)
            firsts.append(block)
            joined.append([])
        joined[index] += new
        for place in new:
            insort(spans[place.path_bytes], (place.line, place.end, index))
    return [
        msgspec.structs.replace(block, number=number, copies=max(block.copies, len(places)), locations=tuple(places))
        for number, (block, places) in enumerate(zip(firsts, joined, strict=True), 1)
    ]


def _index_of_span(spans: Sequence[tuple[int, int, int]], place: DuplicateLocation) -> int | None:
    """Return the index of the first span that a place lies within, or None. Spans come by their first lines.

    A place may reach out of the span by fewer lines than a block has, and by no more than it has within.
    """
    size = place.end - place.line
    for start, end, index in spans[: bisect_left(spans, (place.end,))]:
        shared = min(end, place.end) - max(start, place.line)
        if size - shared < _LINES_MIN and 2 * shared >= size:
            return index
    return None


class _CodeReader:
    """Reads the code lines of files, of one at a time."""

    def __init__(self, question: BatchQuery) -> None:
        self._question = question
        self._ask = load_question("code_lines_of", SOURCE_MODULE)
        self._lost = 0
        self._last: tuple[bytes, _CodeLines] = (b"", _CodeLines((), ()))

    def read(self, path: bytes) -> _CodeLines:
        """Return the code lines of a file; none if its content is lost."""
        if self._last[0] != path:
            self._last = path, self._read(path)
        return self._last[1]

    def note_lost(self) -> None:
        """Note how many files could not be read."""
        if self._lost:
            lost = count_of(self._lost, "file")
            self._question.note(
                f"some locations are unknown: the content of {lost} is missing; check the store with: "
                "codebatch diagnose"
            )

    def _read(self, path: bytes) -> _CodeLines:
        records = self._question.records
        entry, item = records.snapshot.entry(path), records.find_items([path]).get(path)
        lines = None if item is None else records.source.item_lines("analyze", item)
        if entry is None or item is None or lines is None:
            return _CodeLines((), ())
        fingerprints = next((each for each in decode_lines(_decoder, lines) if each.kind == "fingerprints"), None)
        if fingerprints is None:
            return _CodeLines((), ())
        try:
            content = records.read_object(entry)
        except ObjectMissing:
            self._lost += 1
            return _CodeLines((), ())
        found = self._ask(path, content, records.plan.context_of(item), fingerprints.comments)
        return _CodeLines(*cast("tuple[list[bytes], list[int]]", found))


def _files_with_lines(records: BatchRecords, least: int) -> Iterator[bytes]:
    """Yield the files in which a record, or two consecutive ones, have at least so many code lines."""
    path, lines, last = b"", 0, b""
    for found in iter_duplicates(records):
        for each in found:
            before = lines if each.path_bytes == path else 0
            path, lines = each.path_bytes, each.lines
            if before + lines >= least and path != last:
                last = path
                yield path


def _iter_places(
    path: bytes, code: _CodeLines, heads: dict[bytes, list[DuplicateBlock]]
) -> Iterator[tuple[DuplicateBlock, DuplicateLocation]]:
    """Yield the places of blocks in a file, by their first lines; those of one block do not overlap."""
    ends: dict[str, int] = {}
    for start in range(len(code.lines) - _LINES_MIN + 1):
        for block in heads.get(code.head(start), ()):
            if start >= ends.get(block.group, 0) and code.group(start, block.lines) == block.group:
                ends[block.group] = end = start + block.lines
                yield block, make_place(path, code.numbers[start], code.numbers[end - 1] + 1)


def _with_places(block: DuplicateBlock, found: Iterable[DuplicateLocation]) -> DuplicateBlock:
    """Return a block with places that were found beside those of its records, which they do not overlap."""
    places = {(place.path_bytes, place.line): place for place in block.locations}
    for place in found:
        is_known = any(
            place.path_bytes == other.path_bytes and place.line < other.end and other.line < place.end
            for other in block.whole_places
        )
        if not is_known:
            places[place.path_bytes, place.line] = place
    return msgspec.structs.replace(block, locations=tuple(places[each] for each in sorted(places)))
