"""Counting of records by the value of a field.

Stored counts of shards are used if they suffice. Otherwise, the records are decoded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import chain

import msgspec

from codebatch.model.record_counts import RecordCounts
from codebatch.query.filters.decoding import make_record_counter
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.filters.shaping import Groups, group_counts, group_records
from codebatch.query.sources.narrowing import index_lookups
from codebatch.query.sources.records import BatchRecords

_PRECOUNTED_FIELDS = frozenset(("kind", "severity", "code", "lang"))


class ShardCounts(msgspec.Struct, frozen=True):
    """Counts of the matching records of a shard, from stored counts: for each value of a field, and without a value."""

    counts: Mapping[str, int]
    absent: int = 0


def count_records(records: BatchRecords, tasks: Iterable[str], record_filter: RecordFilter, field: str) -> Groups:
    """Count the records of some tasks that pass a filter, for each value of a field.

    A shard is read only if its stored counts do not suffice. Raises InvalidInput or StoreCorrupt.
    """
    counted: Counter[str] = Counter()
    absent = 0
    for task in tasks:
        undecided: set[int] = set()
        for index, piece in enumerate(records.source.iter_pieces(task)):
            shard_counts = (
                count_from_totals(record_filter, field, piece.counts)
                if record_filter.may_match(piece.counts)
                else ShardCounts({})
            )
            if shard_counts is None:
                undecided.add(index)
            else:
                records.reading.answered_from_counts += 1
                counted.update(shard_counts.counts)
                absent += shard_counts.absent
            records.reading.shards += 1
        if undecided:
            decoded = _count_decoded(records, task, undecided, record_filter, field)
            counted.update(dict(decoded.counts))
            absent += decoded.absent
    groups = group_counts(+counted, absent)
    records.reading.matched += groups.total
    return groups


def count_from_totals(record_filter: RecordFilter, field: str, counts: RecordCounts) -> ShardCounts | None:
    """Return the number of records that pass a filter, by value of a field. `counts` are the stored counts of a shard.

    Return None if the numbers cannot be computed from `counts` only.
    """
    counted = RecordFilter(
        kinds=record_filter.kinds,
        severities=record_filter.severities,
        codes=record_filter.codes,
        languages=record_filter.languages,
    )
    if field not in _PRECOUNTED_FIELDS or record_filter != counted:
        return None
    kinds = {kind: number for kind, number in counts.kinds.items() if kind in record_filter.possible_kinds}
    if field == "lang" or record_filter.languages:
        return _count_files(record_filter, field, counts) if record_filter.possible_kinds == {"file"} else None
    if not kinds.pop("diagnostic", 0):
        return ShardCounts(kinds) if field == "kind" else ShardCounts({}, sum(kinds.values()))
    passing = RecordCounts(
        diagnostics={
            severity: record_filter.passing_codes(severity, codes) for severity, codes in counts.diagnostics.items()
        }
    )
    if field == "kind":
        return ShardCounts({**kinds, "diagnostic": sum(passing.severities.values())})
    return ShardCounts(passing.severities if field == "severity" else passing.codes, sum(kinds.values()))


def _count_files(record_filter: RecordFilter, field: str, counts: RecordCounts) -> ShardCounts:
    languages = _select_counts(counts.languages, record_filter.languages)
    passed = sum(languages.values())
    if field == "lang":
        return ShardCounts(languages)
    return ShardCounts({"file": passed}) if field == "kind" else ShardCounts({}, passed)


def _select_counts(counts: Mapping[str, int], values: Collection[str]) -> Mapping[str, int]:
    return {value: number for value, number in counts.items() if not values or value in values}


def _count_decoded(
    records: BatchRecords, task: str, indexes: Collection[int], record_filter: RecordFilter, field: str
) -> Groups:
    """Count the matching records in some shards of a task.

    Members of record lines that are not needed are not decoded.
    """
    tally = make_record_counter(record_filter.fields_needed((field,)))
    languages = records.languages_for(record_filter, (field,))
    pieces = enumerate(records.source.iter_pieces(task, index_lookups(record_filter)))
    blocks = chain.from_iterable(records.read(piece) for index, piece in pieces if index in indexes)
    return group_records(record_filter.iter_tallied(blocks, tally, languages), field, languages)
