"""Counts of records. They are stored with outcomes, so that summaries need not read outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec


class RecordCounts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Numbers of records, stored with an outcome so that summaries do not need to read outputs.

    `diagnostics` counts findings by severity and rule ID.
    """

    kinds: dict[str, int] = {}
    diagnostics: dict[str, dict[str, int]] = {}
    languages: dict[str, int] = {}

    @property
    def records(self) -> int:
        """The number of records of all kinds."""
        return sum(self.kinds.values())

    @property
    def severities(self) -> dict[str, int]:
        """The number of diagnostics by severity."""
        return {severity: sum(codes.values()) for severity, codes in self.diagnostics.items()}

    @property
    def codes(self) -> dict[str, int]:
        """The number of diagnostics by code, sorted by code."""
        totals: dict[str, int] = {}
        for codes in self.diagnostics.values():
            _add_numbers(totals, codes)
        return dict(sorted(totals.items()))


def subtract_counts(total: RecordCounts, part: RecordCounts) -> RecordCounts:
    """Return `total` minus `part`: the counts of the records that are in `total` and not in `part`."""
    diagnostics = {
        severity: _subtract_numbers(codes, part.diagnostics.get(severity, {}))
        for severity, codes in total.diagnostics.items()
    }
    return RecordCounts(
        kinds=_subtract_numbers(total.kinds, part.kinds),
        diagnostics={severity: codes for severity, codes in diagnostics.items() if codes},
        languages=_subtract_numbers(total.languages, part.languages),
    )


def _subtract_numbers(total: Mapping[str, int], part: Mapping[str, int]) -> dict[str, int]:
    return {key: remainder for key, number in total.items() if (remainder := number - part.get(key, 0))}


def add_counts(many: Iterable[RecordCounts]) -> RecordCounts:
    """Return the sum of several counts. Its keys are sorted."""
    kinds: dict[str, int] = {}
    diagnostics: dict[str, dict[str, int]] = {}
    languages: dict[str, int] = {}
    for counts in many:
        _add_numbers(kinds, counts.kinds)
        _add_numbers(languages, counts.languages)
        for severity, codes in counts.diagnostics.items():
            _add_numbers(diagnostics.setdefault(severity, {}), codes)
    return RecordCounts(
        kinds=dict(sorted(kinds.items())),
        diagnostics={severity: dict(sorted(codes.items())) for severity, codes in sorted(diagnostics.items())},
        languages=dict(sorted(languages.items())),
    )


def _add_numbers(total: dict[str, int], part: Mapping[str, int]) -> None:
    for key, number in part.items():
        total[key] = total.get(key, 0) + number
