"""The ranking of hotspots: by score, then by path and line, whatever the order in which candidates are added."""

from __future__ import annotations

from itertools import permutations

import pytest

from codebatch.query.answers.hotspot_ranking import FileFacts, HotspotRanking
from codebatch.query.secondary_files import SecondaryFiles

_CANDIDATES = [(b"a", 5, 1), (b"b", 9, 1), (b"c", 5, 3), (b"a", 5, 9), (b"t", 7, 1), (b"u", 5, 1)]
_BEST = [(b"b", 9), (b"a", 1), (b"a", 9), (b"c", 3)]


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_ranking_is_independent_of_the_order_of_candidates(limit: int) -> None:
    facts = FileFacts(changes=None, dependents=None, secondary_files=SecondaryFiles({b"t": "test", b"u": "test"}))
    for ordered in permutations(_CANDIDATES):
        ranking = HotspotRanking("complexity", facts, limit)
        for path, value, line in ordered:
            ranking.add(path, value, "f", line)
        best, secondary = ranking.best_candidates()
        assert [(each.path, each.line) for each in best] == [(b"b", 1), *_BEST[1:]][:limit]
        # The tests that rank before the last of the list.
        hidden = [each.path for each, _ in secondary]
        assert hidden == ([] if limit == 1 else [b"t"])


def test_changes_and_dependents_weigh_the_complexity() -> None:
    facts = FileFacts(changes={b"a": 3}, dependents={b"b": 6}, secondary_files=None)
    ranking = HotspotRanking("hotspot", facts, 3)
    assert [ranking.score(path, 10) for path in (b"a", b"b", b"c")] == [40.0, 30.0, 10.0]
