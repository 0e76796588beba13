"""Which paths `--path` asks for, and what is refused."""

from __future__ import annotations

import pytest

from codebatch.errors import InvalidInput
from codebatch.query.filters.paths import PathFilter


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [("./src/*.py", "no path has a component '.'"), ("[a", "it is malformed"), ("{a,b}/*", "braces are not expanded")],
)
def test_impossible_pattern_is_rejected(wanted: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=f"matches no path: {reason}"):
        PathFilter(wanted)


def test_hash_in_a_pattern_is_no_comment() -> None:
    assert PathFilter("#*#").matches(b"a/#b#")
