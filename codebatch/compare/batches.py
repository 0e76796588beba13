"""Records that differ between two batches.

If two shard files have equal digests, their records are equal. If two items have equal rows in the tables of shard
files, their records and paths are equal. So for two merged batches, only two things are read: the trailers of shard
files, and the items whose row is not in the other batch.
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
from codebatch.model.record import BaseRecord
from codebatch.query.filters.decoding import decode_lines
from codebatch.query.sources.records import BatchRecords
from codebatch.query.sources.repeated_findings import outputs_of_task
from codebatch.store.results.outputs import MergedOutputs, TaskOutput

R = TypeVar("R", bound=BaseRecord)

RecordsByPath = dict[bytes, list[R]]

# The row of an item without records begins with these bytes.
_EMPTY_ROW_START = bytes(4)


def differing_records(
    old: BatchRecords, new: BatchRecords, task: str, type_: type[R]
) -> tuple[RecordsByPath[R], RecordsByPath[R]]:
    """Return the records of a type in the old and the new batch, by path.

    Only paths at which the records differ are included. A batch without the task has no records. Raises StoreCorrupt.
    """
    old_records, new_records = (
        _group_records_by_path(_differing_blocks(*pair, task, type_), type_) for pair in ((old, new), (new, old))
    )
    for path in [path for path, own_records in old_records.items() if new_records.get(path) == own_records]:
        del old_records[path], new_records[path]
    return old_records, new_records


def read_task_records(records: BatchRecords, task: str, type_: type[R]) -> RecordsByPath[R]:
    """Return all records of a type that a task of the batch emitted, by path. Raises StoreCorrupt.

    If the batch did not run the task, there are none.
    """
    if task not in records.task_names:
        return {}
    pieces = (piece for piece in records.source.iter_pieces(task) if piece.counts.kinds.get(_record_kind(type_)))
    return _group_records_by_path((block for piece in pieces for block in records.read(piece)), type_)


def read_items(records: BatchRecords, task: str, items: Iterable[int], type_: type[R]) -> RecordsByPath[R]:
    """Return the records of a type that a task emitted for some items, by path. Raises StoreCorrupt."""
    items = sorted(items)
    outputs = outputs_of_task(records.source, task)
    if outputs is None:
        return _group_records_by_path((records.source.item_lines(task, item) or b"" for item in items), type_)
    output = outputs.manifest.task_output(task)
    assert output is not None, "it is a task of the batch"
    starts = [shard.start for shard in records.plan.shards]
    places: dict[int, list[int]] = defaultdict(list)
    for item in items:
        index = bisect_right(starts, item) - 1
        places[index].append(item - starts[index])
    return _group_records_by_path(
        (lines for index in places for lines in _item_lines(outputs, output, index, places[index])), type_
    )


def _differing_blocks(one: BatchRecords, other: BatchRecords, task: str, type_: type[R]) -> Iterator[bytes]:
    """Yield blocks of whole record lines of a task in `one`.

    They contain all records that the batch `other` may lack, and possibly others.
    """
    if task not in one.task_names:
        return
    kind = _record_kind(type_)
    outputs, other_outputs = outputs_of_task(one.source, task), outputs_of_task(other.source, task)
    if outputs is None or other_outputs is None:
        pieces = (piece for piece in one.source.iter_pieces(task) if piece.counts.kinds.get(kind))
        yield from (block for piece in pieces for block in one.read(piece))
        return
    output, other_output = outputs.manifest.task_output(task), other_outputs.manifest.task_output(task)
    assert output is not None, "it is a task of the batch"
    differing = [
        index for index in _differing_shards(output, other_output) if output.shards[index].counts.kinds.get(kind)
    ]
    one.reading.shards += len(output.shards)
    one.reading.answered_from_counts += len(output.shards) - len(differing)
    other_rows: set[bytes] = set()
    if differing and other_output is not None:
        other_rows.update(
            row
            for index in _differing_shards(other_output, output)
            for row in _item_rows(other_outputs, other_output, index)
        )
    for index in differing:
        rows = enumerate(_item_rows(outputs, output, index))
        differing_places = [
            place for place, row in rows if row not in other_rows and not row.startswith(_EMPTY_ROW_START)
        ]
        one.reading.count_shard(len(differing_places))
        yield from _item_lines(outputs, output, index, differing_places)


def _differing_shards(output: TaskOutput, other: TaskOutput | None) -> list[int]:
    digests = set() if other is None else {shard.digest for shard in other.shards}
    return [index for index, shard in enumerate(output.shards) if shard.digest not in digests]


def _item_rows(outputs: MergedOutputs, output: TaskOutput, index: int) -> Iterator[bytes]:
    table = outputs.trailer(output, index).table
    return (table[offset : offset + ROW_BYTES] for offset in range(0, len(table), ROW_BYTES))


def _item_lines(outputs: MergedOutputs, output: TaskOutput, index: int, places: Sequence[int]) -> Iterator[bytes]:
    """Yield the record lines of some items of a shard. `places` are their indexes in the shard, ascending."""
    if 2 * len(places) <= (places[-1] + 1 if places else 0):
        yield from outputs.iter_selected_items(output, index, places)
    elif places:
        wanted_places = {*places}
        yield from (lines for place, lines in enumerate(outputs.iter_items(output, index)) if place in wanted_places)


def _group_records_by_path(blocks: Iterable[bytes], type_: type[R]) -> RecordsByPath[R]:
    start = b'{"kind":%b,' % msgspec.json.encode(_record_kind(type_))
    decoder = msgspec.json.Decoder(type_)
    records_by_path: RecordsByPath[R] = defaultdict(list)
    for block in blocks:
        decoded = decode_lines(decoder, _lines_with_prefix(block, start))
        for (path, path_b64), records in groupby(decoded, key=attrgetter("path", "path_b64")):
            try:
                records_by_path[path_from_fields(path, path_b64)] += records
            except ValueError as error:
                raise StoreCorrupt(f"a record has no path: {error}") from error
    return records_by_path


def _lines_with_prefix(block: bytes, start: bytes) -> bytes:
    """Return the lines of a block that begin with `start`. In the usual case, all lines do; this is tested first."""
    if block.startswith(start) and block.count(b"\n" + start) == block.count(b"\n", 0, -1):
        return block
    return b"\n".join([line for line in block.split(b"\n") if line.startswith(start)])


def _record_kind(type_: type[BaseRecord]) -> str:
    return str(type_.__struct_config__.tag)
