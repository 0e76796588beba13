"""Counting of records, given as objects or as encoded lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec

from codebatch.model.record import TAG_BY_TYPE, Diagnostic, File, Record
from codebatch.model.record_counts import RecordCounts


class _RecordCountMembers(msgspec.Struct):
    """The members of a record that are needed to count the record."""

    kind: str
    severity: str = ""
    code: str = ""
    lang: str = ""


_line_decoder = msgspec.json.Decoder(_RecordCountMembers)


def count_records(results: Sequence[Sequence[Record]], types: Iterable[Sequence[type[Record]]]) -> RecordCounts:
    """Return the counts of the records of several results. `types` has the type of each record, in the same order."""
    type_counts = Counter(chain.from_iterable(types))
    has_more = type_counts.keys() & {Diagnostic, File}
    records = list(chain.from_iterable(results)) if has_more else []
    return _make_counts(
        Counter({TAG_BY_TYPE[type_]: number for type_, number in type_counts.items()}),
        [record for record in records if isinstance(record, Diagnostic)],
        [record for record in records if isinstance(record, File)],
    )


def count_lines(lines: bytes) -> RecordCounts:
    """Return the counts of encoded records. Raises ValueError for an invalid line."""
    records = _line_decoder.decode_lines(lines)
    return _make_counts(
        Counter(record.kind for record in records),
        [record for record in records if record.kind == "diagnostic"],
        [record for record in records if record.kind == "file"],
    )


def _make_counts(
    kinds: Counter[str],
    diagnostics: Sequence[Diagnostic | _RecordCountMembers],
    files: Sequence[File | _RecordCountMembers],
) -> RecordCounts:
    by_severity: dict[str, dict[str, int]] = {}
    for (severity, code), number in sorted(Counter((record.severity, record.code) for record in diagnostics).items()):
        by_severity.setdefault(severity, {})[code] = number
    return RecordCounts(
        kinds=dict(sorted(kinds.items())),
        diagnostics=by_severity,
        languages=dict(sorted(Counter(record.lang for record in files).items())),
    )
