"""Tests of the sample of files that are verified."""

from __future__ import annotations

import pytest

from codebatch.model.digest import Digest
from codebatch.model.entry import Entry
from codebatch.operations.maintenance.verification import sample_items

ITEMS = [Entry(f"{number:03}".encode(), "file", False, 0, Digest("")) for number in range(200)]


@pytest.mark.parametrize(("share", "files"), [(0.0001, 1), (0.05, 10), (0.501, 101), (1.0, 200)])
def test_sample_is_deterministic_and_in_path_order(share: float, files: int) -> None:
    chosen = sample_items(ITEMS, Digest("a"), share)
    assert len(chosen) == files
    assert chosen == sorted(chosen)
    assert chosen == sample_items(ITEMS, Digest("a"), share)
    assert set(chosen) <= set(sample_items(ITEMS, Digest("a"), min(1.0, share * 2)))


def test_sample_depends_on_the_plan_and_is_empty_for_zero_items() -> None:
    assert sample_items(ITEMS, Digest("a"), 0.05) != sample_items(ITEMS, Digest("b"), 0.05)
    assert sample_items([], Digest("a"), 0.05) == []
