"""Ranking of functions and files as hotspots. Non-production files that would be in the list are kept separately."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

import msgspec

from codebatch.query.secondary_files import SecondaryCategory, SecondaryFiles

HotspotBy = Literal["hotspot", "cognitive", "complexity", "churn", "dependents", "duplication", "code"]


class HotspotCandidate(NamedTuple):
    """A function, or a file if `symbol` is empty. Candidates sort by descending score."""

    rank: float
    path: bytes
    line: int
    symbol: str
    value: int


class FileFacts(msgspec.Struct, frozen=True):
    """Facts about the files of a batch.

    `changes` and `dependents` map each path to the number of its changes and dependents, or are None if these numbers
    are unknown. `secondary_files` has the non-production files.
    """

    changes: Mapping[bytes, int] | None
    dependents: Mapping[bytes, int] | None
    secondary_files: SecondaryFiles | None

    def change_count(self, path: bytes) -> int | None:
        return None if self.changes is None else self.changes.get(path, 0)

    def dependent_count(self, path: bytes) -> int | None:
        return None if self.dependents is None else self.dependents.get(path, 0)

    def complexity_weight(self, path: bytes, changes: int | None) -> float:
        """Return the factor that multiplies the complexity of a file or function that was changed `changes` times."""
        return _change_weight(changes or 0, self.dependent_count(path) or 0)


class HotspotRanking:
    """The `limit` candidates with the highest scores. Non-production candidates are kept separately.

    A non-production candidate is kept only if it ranks before the last of the `limit` candidates.
    """

    def __init__(self, by: HotspotBy, known: FileFacts, limit: int) -> None:
        self.ranking_metric = by
        self.file_facts = known
        self.limit = limit
        self._ranked: list[HotspotCandidate] = []
        self._secondary: list[tuple[HotspotCandidate, SecondaryCategory]] = []
        self._least_score = 0.0

    def add(self, path: bytes, value: int, symbol: str = "", line: int = 1) -> None:
        score = self.score(path, value)
        if score < self._least_score:
            return
        candidate = HotspotCandidate(-score, path, line, symbol, value)
        category = (
            None if self.file_facts.secondary_files is None else self.file_facts.secondary_files.category_of(path)
        )
        if category is not None:
            self._secondary.append((candidate, category))
            return
        self._ranked.append(candidate)
        if len(self._ranked) > 2 * self.limit:
            self._prune_candidates()

    def score(self, path: bytes, value: int) -> float:
        """Return the score of a file or function with a metric value.

        A function is scored as if it changed as often as its file.
        """
        return (
            value * self.file_facts.complexity_weight(path, self.file_facts.change_count(path))
            if self.ranking_metric == "hotspot"
            else value
        )

    def best_candidates(self) -> tuple[list[HotspotCandidate], list[tuple[HotspotCandidate, SecondaryCategory]]]:
        """Return the ranked candidates, and the non-production candidates that rank before the last of them.

        Both lists are sorted by descending score. If there are fewer than `limit` candidates, all non-production
        candidates are returned.
        """
        self._prune_candidates()
        return self._ranked, sorted(self._secondary)

    def _prune_candidates(self) -> None:
        self._ranked.sort()
        if len(self._ranked) >= self.limit:
            del self._ranked[self.limit :]
            last = self._ranked[-1]
            self._least_score = -last.rank
            self._secondary = [entry for entry in self._secondary if entry[0] < last]


def _change_weight(changes: int, dependents: int) -> float:
    return (1 + changes) * math.log2(2 + dependents)
