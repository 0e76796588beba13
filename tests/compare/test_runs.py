"""Tests of runs of equal lines: first the longest run or that of the rarest line, then the gaps before and after it."""

from __future__ import annotations

from array import array

import pytest

from codebatch.compare.matching import histogram_diff
from codebatch.compare.matching.histogram_diff import UnmatchedGap, pair_runs
from codebatch.compare.matching.lines import NO_LINE


def _paired(old: str, new: str) -> str:
    """Return for each letter of `old` its place in `new` in hex, or `-` if it has none."""
    paired = array("l", [NO_LINE]) * len(old)
    pair_runs([*map(str.encode, old)], [*map(str.encode, new)], paired, [UnmatchedGap(0, len(old), 0, len(new))])
    return "".join("-" if place == NO_LINE else f"{place:x}" for place in paired)


@pytest.mark.parametrize(
    ("old", "new", "paired"),
    [
        ("", "abc", ""),
        ("abc", "xyz", "---"),
        ("abc", "abc", "012"),
        # The longest run, not the first.
        ("abXabc", "abc", "---012"),
        ("abcab", "xabcyab", "12356"),
        # No letter is unique.
        ("{a}{a}", "{a}x{a}{a}y", "456789"),
        # The rarest letter decides, even if its run is short.
        ("aabbq", "qaabb", "----0"),
        ("aXa", "XYaZa", "-02"),
    ],
)
def test_runs_are_matched(old: str, new: str, paired: str) -> None:
    assert _paired(old, new) == paired


def test_frequent_line_starts_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _paired("aaab", "xaaa") == "123-"
    monkeypatch.setattr(histogram_diff, "_OCCURRENCES_MAX", 2)
    assert _paired("aaab", "xaaa") == "----"
    assert _paired("aaab", "xaaab") == "1234"


def test_run_matching_stops_at_its_step_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histogram_diff, "_SEARCH_STEPS_MAX", 1)
    assert _paired("abcXdYe", "abcdZe") == "012----"
