"""Files of a tree that a list of patterns selects."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from codebatch.snapshotting import matching_files
from codebatch.snapshotting.directories import DirectoryDescriptors
from codebatch.snapshotting.matching_files import find_matching_files, unmatched_patterns

FILES = (
    "a",
    "b c",
    "dist/a",
    "dist/.hidden",
    "dist/sub/a",
    "x/dist/a",
    ".git/a",
    "y/.codebatch/a",
    "[z]/a",
    "#c",
    "!d",
)


def _find(root: Path, *patterns: str) -> list[str]:
    with DirectoryDescriptors(bytes(root)) as directories:
        return [os.fsdecode(path) for path in find_matching_files(directories, patterns)]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    (root / "link").symlink_to("dist")
    return root


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["/a"], ["a"]),
        (["a"], ["[z]/a", "a", "dist/a", "dist/sub/a", "x/dist/a"]),
        (["dist/"], ["dist/.hidden", "dist/a", "dist/sub/a", "x/dist/a"]),
        (["/dist"], ["dist/.hidden", "dist/a", "dist/sub/a"]),
        (["dist/*"], ["dist/.hidden", "dist/a", "dist/sub/a"]),
        (["dist/**", "!a"], ["dist/.hidden"]),
        (["dist/s?b/a"], ["dist/sub/a"]),
        (["**/dist/a"], ["dist/a", "x/dist/a"]),
        (["b c "], ["b c"]),
        (["\\[z]/a"], ["[z]/a"]),
        (["\\#c", "\\!d"], ["!d", "#c"]),
        (["link"], ["link"]),
        (["link/a"], []),
        ([".git/a"], []),
        (["missing/deep/*"], []),
    ],
)
def test_patterns_select_files_as_gitignore_does(root: Path, patterns: list[str], expected: list[str]) -> None:
    assert _find(root, *patterns) == expected


PARTS = st.lists(
    st.sampled_from(["dist", "sub", "a", "*", "**", "x", "[z]", "\\[z]", "d?st", "b c"]), min_size=1, max_size=3
)


@given(
    st.lists(
        st.builds(
            lambda parts, start, end: start + "/".join(parts) + end,
            PARTS,
            st.sampled_from(["", "/"]),
            st.sampled_from(["", "/"]),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_directories_that_are_not_read_have_no_matches(root: Path, patterns: list[str]) -> None:
    """Compare with a search that reads all directories, because of a pattern that matches nothing."""
    assert _find(root, *patterns) == _find(root, "no-such-file", *patterns)


def test_patterns_without_matches_are_named() -> None:
    assert unmatched_patterns(["a", "!b", "c/", "d"], [b"x/a", b"c/x"]) == ["d"]


def test_search_is_limited(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching_files, "VISITED_PATHS_MAX", 10)
    assert _find(root, "/a") == ["a"]
    with pytest.raises(OSError, match="more than 10 paths"):
        _find(root, "a", "dist")
