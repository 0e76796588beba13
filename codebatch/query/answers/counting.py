"""How many records have which value of a field: from the counts of their shards where these tell it, else decoded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import chain

import msgspec

from codebatch.model.record_counts import Counts
from codebatch.query.filters.decoding import tally_of
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.filters.shaping import Groups, group, group_records
from codebatch.query.sources.narrowing import lookups_of
from codebatch.query.sources.records import BatchRecords

_COUNTED = frozenset(("kind", "severity", "code", "lang"))


class ShardCounts(msgspec.Struct, frozen=True):
    """What the counts of a shard tell: how many records have which value, and how many have none."""

    counts: Mapping[str, int]
    absent: int = 0


def count_records(records: BatchRecords, tasks: Iterable[str], asked: RecordFilter, field: str) -> Groups:
    """The records of some tasks that a filter lets pass, by the value of a field. Raises InvalidInput or StoreCorrupt.

    Nothing is read of a shard whose counts tell it.
    """
    counted: Counter[str] = Counter()
    absent = 0
    for task in tasks:
        untold: set[int] = set()
        for place, piece in enumerate(records.source.iter_pieces(task)):
            told = tell(asked, field, piece.counts) if asked.may_match(piece.counts) else ShardCounts({})
            if told is None:
                untold.add(place)
            else:
                records.reading.told_by_counts += 1
                counted.update(told.counts)
                absent += told.absent
            records.reading.shards += 1
        if untold:
            read = _count_read(records, task, untold, asked, field)
            counted.update(dict(read.counts))
            absent += read.absent
    found = group(+counted, absent)
    records.reading.matched += found.total
    return found


def tell(asked: RecordFilter, field: str, counts: Counts) -> ShardCounts | None:
    """How many of the records that are counted pass, by the value of a field; None where the counts do not tell."""
    counted = RecordFilter(kinds=asked.kinds, severities=asked.severities, codes=asked.codes, languages=asked.languages)
    if field not in _COUNTED or asked != counted:
        return None
    kinds = {kind: number for kind, number in counts.kinds.items() if kind in asked.possible_kinds}
    if field == "lang" or asked.languages:
        return _tell_files(asked, field, counts) if asked.possible_kinds == {"file"} else None
    if not kinds.pop("diagnostic", 0):
        return ShardCounts(kinds) if field == "kind" else ShardCounts({}, sum(kinds.values()))
    found = Counts(
        diagnostics={severity: asked.passing_codes(severity, codes) for severity, codes in counts.diagnostics.items()}
    )
    if field == "kind":
        return ShardCounts({**kinds, "diagnostic": sum(found.severities.values())})
    return ShardCounts(found.severities if field == "severity" else found.codes, sum(kinds.values()))


def _tell_files(asked: RecordFilter, field: str, counts: Counts) -> ShardCounts:
    languages = _chosen(counts.languages, asked.languages)
    passed = sum(languages.values())
    if field == "lang":
        return ShardCounts(languages)
    return ShardCounts({"file": passed}) if field == "kind" else ShardCounts({}, passed)


def _chosen(counts: Mapping[str, int], wanted: Collection[str]) -> Mapping[str, int]:
    return {value: number for value, number in counts.items() if not wanted or value in wanted}


def _count_read(records: BatchRecords, task: str, places: Collection[int], asked: RecordFilter, field: str) -> Groups:
    """The records that pass in some shards of a task, read, and decoded as far as the question goes."""
    tally = tally_of(asked.fields_needed((field,)))
    languages = records.languages_for(asked, (field,))
    pieces = enumerate(records.source.iter_pieces(task, lookups_of(asked)))
    blocks = chain.from_iterable(records.read(piece) for place, piece in pieces if place in places)
    return group_records(asked.iter_tallied(blocks, tally, languages), field, languages)
