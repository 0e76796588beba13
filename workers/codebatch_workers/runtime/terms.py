"""Index terms that a worker writes for shards whose records it has in memory (SPEC.md "Index").

A terms file is named by the digest of the trailer that the merge will write for a shard file. A worker knows this
digest if one outcome covers the whole shard. For other shards, or if writing fails, the index is made by decoding the
records.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from codebatch.errors import StoreError
from codebatch.index.keys import KINDS_POSTED
from codebatch.index.terms import Posted, collect_terms, encode_terms, posted_by, terms_path
from codebatch.model.plan import Plan
from codebatch.store.results.outcomes import EncodedOutcome
from codebatch.store.results.shard_files import make_trailer, read_trailer
from codebatch.system.files.files import Files
from codebatch_workers.runtime.results import EncodedRecords, ReusedRecords
from codebatch_workers.runtime.shard_parts import Keep


def terms_keeper(files: Files, store_root: Path, plan: Plan) -> Keep:
    """Return a function that writes terms files for shards of a plan.

    Write errors are ignored, because only speed is lost.
    """
    shard_items = {shard.id: shard.items for shard in plan.shards}

    def keep(encoded: EncodedOutcome, results: Sequence[EncodedRecords | ReusedRecords]) -> None:
        outcome = encoded.outcome
        if len(results) != shard_items[outcome.shard] or KINDS_POSTED.isdisjoint(outcome.counts.kinds):
            return
        trailer = read_trailer(make_trailer(encoded.frames, encoded.table, outcome.bytes))
        with contextlib.suppress(StoreError, ValueError):  # The lines of an older batch may not be valid records.
            terms = collect_terms(posted_by_frames(results, [frame.bytes for frame in trailer.frames]))
            files.write_volatile(terms_path(store_root, trailer.digest), encode_terms(trailer.digest, terms))

    return keep


def posted_by_frames(results: Iterable[EncodedRecords | ReusedRecords], sizes: Iterable[int]) -> Iterator[Posted]:
    """Yield the terms of each frame.

    `sizes` are the sizes of the frames that hold the results of the items of a shard.

    Each line is a record. So if the records of an item span several frames, its lines determine which records are in
    which frame. Raises ValueError if lines of an older batch are not valid records.
    """
    remaining_sizes = iter(sizes)
    bytes_left = next(remaining_sizes, 1)  # An empty shard has no frames.
    frame_results: list[EncodedRecords | ReusedRecords] = []
    for result in results:
        length = len(result.lines)
        start = record = 0
        while length - start >= bytes_left:
            end = start + bytes_left
            next_record = _record_at(result, end, start, record)
            frame_results.append(_part(result, slice(start, end), slice(record, next_record)))
            yield _posted(frame_results)
            frame_results, bytes_left, start, record = [], next(remaining_sizes, 1), end, next_record
        if start < length:
            frame_results.append(_part(result, slice(start, None), slice(record, None)) if start else result)
            bytes_left -= length - start


def _record_at(result: EncodedRecords | ReusedRecords, end: int, start: int, record: int) -> int:
    """Return the index of the record that begins at byte `end`, given that `record` begins at `start`.

    Lines are counted from the nearer side.
    """
    if isinstance(result, ReusedRecords):
        return 0
    if len(result.lines) - end < end - start:
        return len(result.records) - result.lines.count(b"\n", end)
    return record + result.lines.count(b"\n", start, end)


def _part(result: EncodedRecords | ReusedRecords, lines: slice, records: slice) -> EncodedRecords | ReusedRecords:
    """Return a part of a result: some lines, or the corresponding records."""
    if isinstance(result, ReusedRecords):
        return ReusedRecords(result.lines[lines])
    return EncodedRecords(b"", result.records[records], result.types[records])


def _posted(frame_results: Sequence[EncodedRecords | ReusedRecords]) -> Posted:
    encoded = [result for result in frame_results if isinstance(result, EncodedRecords)]
    reused_lines = (
        [result.lines for result in frame_results if isinstance(result, ReusedRecords)]
        if len(encoded) < len(frame_results)
        else ()
    )
    return posted_by(
        list(chain.from_iterable([result.records for result in encoded])),
        list(chain.from_iterable([result.types for result in encoded])),
        b"".join(reused_lines),
    )
