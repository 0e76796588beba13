"""Index terms that a worker writes for shards while it has their records in memory (SPEC.md "Index").

The file with the terms of a shard is named by the digest of the shard file's trailer. The merge writes the shard file
later. If one outcome covers the whole shard, the worker can already compute this digest. For other shards, or if
writing fails, the index decodes the stored records instead.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from codebatch.errors import StoreError
from codebatch.index.keys import INDEXED_KINDS
from codebatch.index.terms import FrameTerms, collect_terms, record_terms, write_terms
from codebatch.model.plan import Plan
from codebatch.store.results.outcomes import EncodedOutcome
from codebatch.store.results.shard_files import make_trailer, read_trailer
from codebatch.system.files.files import StoreFiles
from codebatch_workers.runtime.results import EncodedRecords, ReusedRecords
from codebatch_workers.runtime.shard_parts import TermsKeeper


def terms_keeper(files: StoreFiles, store_root: Path, plan: Plan) -> TermsKeeper:
    """Return a function that writes the terms file of an outcome, if the outcome covers a whole shard of the plan.

    Write errors are ignored, because an index can also be built without the file, only more slowly.
    """
    shard_items = {shard.id: shard.items for shard in plan.shards}

    def keep(encoded: EncodedOutcome, results: Sequence[EncodedRecords | ReusedRecords]) -> None:
        outcome = encoded.outcome
        if len(results) != shard_items[outcome.shard] or INDEXED_KINDS.isdisjoint(outcome.counts.kinds):
            return
        trailer = read_trailer(make_trailer(encoded.frames, encoded.table, outcome.bytes))
        # Lines that were reused from an older batch may not be valid records.
        with contextlib.suppress(StoreError, ValueError):
            terms = collect_terms(terms_by_frame(results, [frame.bytes for frame in trailer.frames]))
            write_terms(files, store_root, trailer.digest, terms)

    return keep


def terms_by_frame(results: Iterable[EncodedRecords | ReusedRecords], sizes: Iterable[int]) -> Iterator[FrameTerms]:
    """Yield the index terms of each frame of a shard file.

    `results` are the results of the shard's items, in order. `sizes` are the uncompressed sizes of the frames that
    contain their lines.

    Each line is one record. The lines of an item can span several frames. In this case, the number of lines in each
    frame determines which records the frame contains. Raises ValueError if a line of an older batch is not a valid
    record.
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
            frame_results.append(_slice_result(result, slice(start, end), slice(record, next_record)))
            yield _frame_terms(frame_results)
            frame_results, bytes_left, start, record = [], next(remaining_sizes, 1), end, next_record
        if start < length:
            frame_results.append(_slice_result(result, slice(start, None), slice(record, None)) if start else result)
            bytes_left -= length - start


def _record_at(result: EncodedRecords | ReusedRecords, end: int, start: int, record: int) -> int:
    """Return the index of the record whose line begins at byte `end`. The record with index `record` begins at `start`.

    Lines are counted from `start` or from the end of the result, whichever is nearer, to save time.
    """
    if isinstance(result, ReusedRecords):
        return 0
    if len(result.lines) - end < end - start:
        return len(result.records) - result.lines.count(b"\n", end)
    return record + result.lines.count(b"\n", start, end)


def _slice_result(
    result: EncodedRecords | ReusedRecords, lines: slice, records: slice
) -> EncodedRecords | ReusedRecords:
    """Return a part of a result. Reused results are sliced by `lines`, encoded results by `records`."""
    if isinstance(result, ReusedRecords):
        return ReusedRecords(result.lines[lines])
    return EncodedRecords(b"", result.records[records], result.types[records])


def _frame_terms(frame_results: Sequence[EncodedRecords | ReusedRecords]) -> FrameTerms:
    encoded = [result for result in frame_results if isinstance(result, EncodedRecords)]
    reused_lines = (
        [result.lines for result in frame_results if isinstance(result, ReusedRecords)]
        if len(encoded) < len(frame_results)
        else ()
    )
    return record_terms(
        list(chain.from_iterable([result.records for result in encoded])),
        list(chain.from_iterable([result.types for result in encoded])),
        b"".join(reused_lines),
    )
