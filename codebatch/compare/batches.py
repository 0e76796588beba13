"""Which records two batches do not have in common. What they have is not read where that can be told without it.

Two shard files of one digest hold the same records, and two items of one row do, their paths among them: so of two
merged batches nothing is read but trailers, and the items of which the other one has no such row.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TypeVar

import msgspec

from codebatch.errors import StoreCorrupt
from codebatch.model.analysis.item_table import ROW_BYTES
from codebatch.model.entry import path_from_fields
from codebatch.model.record import Located
from codebatch.query.filters.decoding import decode_lines
from codebatch.query.filters.line_prefilter import starts_of
from codebatch.query.sources.records import BatchRecords
from codebatch.store.results.outputs import Outputs, TaskOutput

R = TypeVar("R", bound=Located)

ByPath = dict[bytes, list[R]]

# How the row of an item begins that has no records.
_NOTHING = bytes(4)


def records_unlike(old: BatchRecords, new: BatchRecords, task: str, type_: type[R]) -> tuple[ByPath[R], ByPath[R]]:
    """The records of a type at the paths of which a task does not say the same in both; none where it has no such task.

    Raises StoreCorrupt.
    """
    ours, theirs = (_by_path(_blocks(*pair, task, type_), type_) for pair in ((old, new), (new, old)))
    for path in [path for path, found in ours.items() if theirs.get(path) == found]:
        del ours[path], theirs[path]
    return ours, theirs


def records_of(records: BatchRecords, task: str, type_: type[R]) -> ByPath[R]:
    """All records of a type that a task gives so far; none where there is no such task. Raises StoreCorrupt."""
    if task not in records.task_names:
        return {}
    pieces = (piece for piece in records.source.iter_pieces(task) if piece.counts.kinds.get(_kind(type_)))
    return _by_path((block for piece in pieces for block in records.read(piece)), type_)


def read_items(records: BatchRecords, task: str, items: Iterable[int], type_: type[R]) -> ByPath[R]:
    """The records of a type that a task gives of some items so far. Raises StoreCorrupt."""
    items = sorted(items)
    outputs = records.source.outputs
    if outputs is None:
        return _by_path((records.source.item_lines(task, item) or b"" for item in items), type_)
    output = outputs.manifest.task(task)
    assert output is not None, "it is a task of the batch"
    starts = [shard.start for shard in records.plan.shards]
    places: dict[int, list[int]] = defaultdict(list)
    for item in items:
        index = bisect_right(starts, item) - 1
        places[index].append(item - starts[index])
    return _by_path((lines for index in places for lines in _some(outputs, output, index, places[index])), type_)


def _blocks(one: BatchRecords, other: BatchRecords, task: str, type_: type[R]) -> Iterator[bytes]:
    """The records of which the other batch may not have the same, in blocks of whole lines."""
    if task not in one.task_names:
        return
    kind = _kind(type_)
    mine, others = one.source.outputs, other.source.outputs
    if mine is None or others is None:
        pieces = (piece for piece in one.source.iter_pieces(task) if piece.counts.kinds.get(kind))
        yield from (block for piece in pieces for block in one.read(piece))
        return
    output, its_other = mine.manifest.task(task), others.manifest.task(task)
    assert output is not None, "it is a task of the batch"
    left = [index for index in _unlike(output, its_other) if output.shards[index].counts.kinds.get(kind)]
    one.reading.shards += len(output.shards)
    one.reading.told_by_counts += len(output.shards) - len(left)
    known: set[bytes] = set()
    if left and its_other is not None:
        known.update(row for index in _unlike(its_other, output) for row in _rows(others, its_other, index))
    for index in left:
        rows = enumerate(_rows(mine, output, index))
        wanted = [place for place, row in rows if row not in known and not row.startswith(_NOTHING)]
        one.reading.note(len(wanted))
        yield from _some(mine, output, index, wanted)


def _unlike(output: TaskOutput, other: TaskOutput | None) -> list[int]:
    known = set() if other is None else {shard.digest for shard in other.shards}
    return [index for index, shard in enumerate(output.shards) if shard.digest not in known]


def _rows(outputs: Outputs, output: TaskOutput, index: int) -> Iterator[bytes]:
    table = outputs.trailer(output, index).table
    return (table[at : at + ROW_BYTES] for at in range(0, len(table), ROW_BYTES))


def _some(outputs: Outputs, output: TaskOutput, index: int, places: Sequence[int]) -> Iterator[bytes]:
    """The record lines of some items of a shard, which ascend, and of no other item."""
    if 2 * len(places) <= (places[-1] + 1 if places else 0):
        yield from outputs.iter_some(output, index, places)
    elif places:
        wanted = {*places}
        yield from (lines for place, lines in enumerate(outputs.iter_items(output, index)) if place in wanted)


def _by_path(blocks: Iterable[bytes], type_: type[R]) -> ByPath[R]:
    (start,) = starts_of((_kind(type_),))
    decoder = msgspec.json.Decoder(type_)
    found: ByPath[R] = defaultdict(list)
    for block in blocks:
        every = decode_lines(decoder, _beginning(block, start))
        for (path, path_b64), records in groupby(every, key=attrgetter("path", "path_b64")):
            try:
                found[path_from_fields(path, path_b64)] += records
            except ValueError as error:
                raise StoreCorrupt(f"a record has no path: {error}") from error
    return found


def _beginning(block: bytes, start: bytes) -> bytes:
    """The lines of a block that begin so, which most often are all."""
    if block.startswith(start) and block.count(b"\n" + start) == block.count(b"\n", 0, -1):
        return block
    return b"\n".join([line for line in block.split(b"\n") if line.startswith(start)])


def _kind(type_: type[Located]) -> str:
    return str(type_.__struct_config__.tag)
