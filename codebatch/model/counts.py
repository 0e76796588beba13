"""Sums over records, kept beside them so that summaries read no output."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class Counts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Sums over records, kept with an outcome so that summaries read no output."""

    kinds: dict[str, int] = {}
    severities: dict[str, int] = {}
    codes: dict[str, int] = {}
    languages: dict[str, int] = {}

    @property
    def records(self) -> int:
        """Records of every kind."""
        return sum(self.kinds.values())


def subtract_counts(whole: Counts, part: Counts) -> Counts:
    """The counts of what is left of a whole without a part of it."""
    return Counts(
        kinds=_left(whole.kinds, part.kinds),
        severities=_left(whole.severities, part.severities),
        codes=_left(whole.codes, part.codes),
        languages=_left(whole.languages, part.languages),
    )


def _left(whole: dict[str, int], part: dict[str, int]) -> dict[str, int]:
    return {key: left for key, number in whole.items() if (left := number - part.get(key, 0))}


def add_counts(many: Iterable[Counts]) -> Counts:
    """The sum of counts, keys sorted."""
    kinds: dict[str, int] = {}
    severities: dict[str, int] = {}
    codes: dict[str, int] = {}
    languages: dict[str, int] = {}
    for counts in many:
        for total, part in (
            (kinds, counts.kinds),
            (severities, counts.severities),
            (codes, counts.codes),
            (languages, counts.languages),
        ):
            for key, number in part.items():
                total[key] = total.get(key, 0) + number
    return Counts(
        kinds=dict(sorted(kinds.items())),
        severities=dict(sorted(severities.items())),
        codes=dict(sorted(codes.items())),
        languages=dict(sorted(languages.items())),
    )
