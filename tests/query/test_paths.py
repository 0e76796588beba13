"""Tests of `--path`: the paths that it matches, and patterns that are rejected."""

from __future__ import annotations

import pytest

from codebatch.errors import InvalidInput
from codebatch.query.filters.paths import PathFilter


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [("./src/*.py", "no path has a component '.'"), ("[a", "it is malformed"), ("{a,b}/*", "braces are not expanded")],
)
def test_impossible_pattern_is_rejected(pattern: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=f"matches no path: {reason}"):
        PathFilter(pattern)


def test_hash_in_a_pattern_is_no_comment() -> None:
    assert PathFilter("#*#").matches(b"a/#b#")
