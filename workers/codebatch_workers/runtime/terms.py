"""What a worker keeps for the index of its batch: the terms of shards whose records it has in hand (SPEC.md "Index").

A terms file is found by the digest of the trailer that merging gives a shard file. That is known here where one outcome
covers all of a shard. Of other shards, and where it cannot be written, who makes the index decodes the records.
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
    """Writes terms files of the shards of a plan. What it cannot write it leaves: nothing but speed rests on them."""
    shard_items = {shard.id: shard.items for shard in plan.shards}

    def keep(encoded: EncodedOutcome, said: Sequence[EncodedRecords | ReusedRecords]) -> None:
        outcome = encoded.outcome
        if len(said) != shard_items[outcome.shard] or KINDS_POSTED.isdisjoint(outcome.counts.kinds):
            return
        trailer = read_trailer(make_trailer(encoded.frames, encoded.table, outcome.bytes))
        with contextlib.suppress(StoreError, ValueError):  # Lines of an older batch may be no records.
            terms = collect_terms(posted_by_frames(said, [frame.bytes for frame in trailer.frames]))
            files.write_volatile(terms_path(store_root, trailer.digest), encode_terms(trailer.digest, terms))

    return keep


def posted_by_frames(said: Iterable[EncodedRecords | ReusedRecords], sizes: Iterable[int]) -> Iterator[Posted]:
    """What each frame posts of those, of so many bytes, that hold what is said of the items of a shard.

    A record is a line: so of an item that lies in several frames its lines tell which of its records are in each.
    Raises ValueError where lines of an older batch are no records.
    """
    more = iter(sizes)
    left = next(more, 1)  # Of nothing there are no frames.
    inside: list[EncodedRecords | ReusedRecords] = []
    for each in said:
        length = len(each.lines)
        start = record = 0
        while length - start >= left:
            end = start + left
            ended = _record_at(each, end, start, record)
            inside.append(_part(each, slice(start, end), slice(record, ended)))
            yield _posted(inside)
            inside, left, start, record = [], next(more, 1), end, ended
        if start < length:
            inside.append(_part(each, slice(start, None), slice(record, None)) if start else each)
            left -= length - start


def _record_at(each: EncodedRecords | ReusedRecords, end: int, start: int, record: int) -> int:
    """Which record of an item begins at a byte of it, where another one does at `start`: the shorter way is counted."""
    if isinstance(each, ReusedRecords):
        return 0
    if len(each.lines) - end < end - start:
        return len(each.records) - each.lines.count(b"\n", end)
    return record + each.lines.count(b"\n", start, end)


def _part(each: EncodedRecords | ReusedRecords, lines: slice, records: slice) -> EncodedRecords | ReusedRecords:
    """Some lines of an item, or the records that they are."""
    if isinstance(each, ReusedRecords):
        return ReusedRecords(each.lines[lines])
    return EncodedRecords(b"", each.records[records], each.types[records])


def _posted(inside: Sequence[EncodedRecords | ReusedRecords]) -> Posted:
    ready = [each for each in inside if isinstance(each, EncodedRecords)]
    kept = [each.lines for each in inside if isinstance(each, ReusedRecords)] if len(ready) < len(inside) else ()
    return posted_by(
        list(chain.from_iterable([each.records for each in ready])),
        list(chain.from_iterable([each.types for each in ready])),
        b"".join(kept),
    )
