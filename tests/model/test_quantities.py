"""Numbers for display: percentages are rounded down, and counts have the right noun."""

from __future__ import annotations

import pytest

from codebatch.model.text.quantities import count_text, percentage_of


@pytest.mark.parametrize(
    ("part", "whole", "percent"), [(0, 3, 0.0), (2, 3, 66.6), (9_996, 10_000, 99.9), (3, 3, 100.0), (0, 0, 100.0)]
)
def test_percentage_is_never_rounded_up(part: int, whole: int, percent: float) -> None:
    assert percentage_of(part, whole) == percent


def test_count_of_1_is_singular() -> None:
    texts = [count_text(count, *nouns) for nouns in (("file",), ("copy", "copies")) for count in (0, 1, 1000)]
    assert texts == ["0 files", "1 file", "1,000 files", "0 copies", "1 copy", "1,000 copies"]
