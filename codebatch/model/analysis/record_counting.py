"""How records are counted: those that a task gives, and those that stand written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec

from codebatch.model.record import TAGS, Diagnostic, File, Record
from codebatch.model.record_counts import Counts


class _CountedLine(msgspec.Struct):
    """What of a record is counted."""

    kind: str
    severity: str = ""
    code: str = ""
    lang: str = ""


_line_decoder = msgspec.json.Decoder(_CountedLine)


def count_records(results: Sequence[Sequence[Record]], types: Iterable[Sequence[type[Record]]]) -> Counts:
    """The counts of the records of some results; `types` are theirs."""
    of_types = Counter(chain.from_iterable(types))
    has_more = of_types.keys() & {Diagnostic, File}
    records = list(chain.from_iterable(results)) if has_more else []
    return _counts(
        Counter({TAGS[type_]: number for type_, number in of_types.items()}),
        [record for record in records if isinstance(record, Diagnostic)],
        [record for record in records if isinstance(record, File)],
    )


def count_lines(lines: bytes) -> Counts:
    """The counts of some records as they are written. Raises ValueError."""
    records = _line_decoder.decode_lines(lines)
    return _counts(
        Counter(record.kind for record in records),
        [record for record in records if record.kind == "diagnostic"],
        [record for record in records if record.kind == "file"],
    )


def _counts(
    kinds: Counter[str], diagnostics: Sequence[Diagnostic | _CountedLine], files: Sequence[File | _CountedLine]
) -> Counts:
    by_severity: dict[str, dict[str, int]] = {}
    for (severity, code), number in sorted(Counter((record.severity, record.code) for record in diagnostics).items()):
        by_severity.setdefault(severity, {})[code] = number
    return Counts(
        kinds=dict(sorted(kinds.items())),
        diagnostics=by_severity,
        languages=dict(sorted(Counter(record.lang for record in files).items())),
    )
