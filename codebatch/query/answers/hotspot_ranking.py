"""How hotspots are ranked: which functions and files are the hottest, and what stands apart before the last of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

if TYPE_CHECKING:
    from codebatch.query.secondary_files import Apart, SecondaryFiles
    from codebatch.query.sources.records import BatchRecords

HotspotBy = Literal["hotspot", "cognitive", "complexity", "churn", "dependents", "duplication", "code"]
_READ_ONE_BY_ONE_MAX = 500
"""Of so many files the records are looked up; where more may have one of the best, all are read."""
_DEARER_ALONE = 20
"""How many times as much a file takes that is looked up, of a batch that is small."""


class HotspotCandidate(NamedTuple):
    """A function, or where `symbol` is empty a file. Sorted, the hottest is first."""

    rank: float
    path: bytes
    line: int
    symbol: str
    value: int


class FilesKnown(msgspec.Struct, frozen=True):
    """What is known of files: changes and dependents, each None where it is not, and which of them stand apart."""

    changes: Mapping[bytes, int] | None
    dependents: Mapping[bytes, int] | None
    apart: SecondaryFiles | None

    def changes_of(self, path: bytes) -> int | None:
        return None if self.changes is None else self.changes.get(path, 0)

    def dependents_of(self, path: bytes) -> int | None:
        return None if self.dependents is None else self.dependents.get(path, 0)

    def weight_of(self, path: bytes, changes: int | None) -> float:
        """Return how much more complexity weighs in a file, of what changed so often."""
        return _weight(changes or 0, self.dependents_of(path) or 0)


class Ranking:
    """The best of what it is given, and of what stands apart so much as is before the last of them."""

    def __init__(self, by: HotspotBy, known: FilesKnown, limit: int) -> None:
        self.by = by
        self.known = known
        self.limit = limit
        self._kept: list[HotspotCandidate] = []
        self._beside: list[tuple[HotspotCandidate, Apart]] = []
        self._least_score = 0.0
        changes = max((known.changes or {}).values(), default=0)
        dependents = max((known.dependents or {}).values(), default=0)
        self._weight_max = _weight(changes, dependents) if by == "hotspot" else 1.0

    def add(self, path: bytes, value: int, symbol: str = "", line: int = 1) -> None:
        score = self.score(path, value)
        if score < self._least_score:
            return
        candidate = HotspotCandidate(-score, path, line, symbol, value)
        apart = None if self.known.apart is None else self.known.apart.of(path)
        if apart is not None:
            self._beside.append((candidate, apart))
            return
        self._kept.append(candidate)
        if len(self._kept) > 2 * self.limit:
            self._prune()

    def score(self, path: bytes, value: int) -> float:
        """Return by what a file of such a value is ranked, and a function if it changes as often as its file."""
        return value * self.known.weight_of(path, self.known.changes_of(path)) if self.by == "hotspot" else value

    def least_score(self) -> float:
        """What has less is none of the best, whatever else comes."""
        self._prune()
        return self._least_score

    def above(self) -> float:
        """No value that is not above this can be of any more use."""
        return self._least_score / self._weight_max - 1

    def best(self) -> tuple[list[HotspotCandidate], list[tuple[HotspotCandidate, Apart]]]:
        """The hottest first; and what stands apart before the last of these, all of it where there are fewer."""
        self._prune()
        return self._kept, sorted(self._beside)

    def _prune(self) -> None:
        self._kept.sort()
        if len(self._kept) >= self.limit:
            del self._kept[self.limit :]
            last = self._kept[-1]
            self._least_score = -last.rank
            self._beside = [each for each in self._beside if each[0] < last]


def _weight(changes: int, dependents: int) -> float:
    return (1 + changes) * math.log2(2 + dependents)


def rank_functions(
    records: BatchRecords,
    metric: str,
    least: int,
    is_wanted: Callable[[bytes], bool],
    greatest: Mapping[bytes, int] | None,
    new_ranking: Callable[[], Ranking],
) -> Ranking:
    """The functions of which a metric is `least` or more.

    `greatest` is what it is of a function of each file at most, those without left out: only files are read that may
    have one of the best. All are where it is None, or so many may. Raises StoreCorrupt.
    """

    from codebatch.query.answers.numbers import iter_functions

    def add(ranking: Ranking, files: Iterable[bytes] | None) -> None:
        for number in iter_functions(records, metric, least, ranking.above, files):
            path = number.path_bytes
            if is_wanted(path):
                ranking.add(path, number.value, number.symbol, number.line)

    ranking = new_ranking()
    if greatest is not None:
        bounds = [(ranking.score(path, most), path) for path, most in greatest.items() if most >= least]
        bounds = sorted((each for each in bounds if is_wanted(each[1])), reverse=True)
        read = 0
        few = min(_READ_ONE_BY_ONE_MAX, records.batch.about.items // _DEARER_ALONE)
        while read < few:
            score = ranking.least_score()
            chosen = [path for bound, path in bounds[read : read + ranking.limit] if bound >= score]
            if not chosen:
                return ranking
            add(ranking, chosen)
            read += len(chosen)
        ranking = new_ranking()
    add(ranking, None)
    return ranking
