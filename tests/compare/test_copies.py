"""Tests of duplicate blocks in two trees: a block is new only if its code was not duplicated before."""

from __future__ import annotations

import pytest

from codebatch.compare.duplicates import compare_duplicates
from codebatch.model.record import Duplicate
from tests.compare.trees import TextTrees, fields

_TEXT = "".join(f"{number}\n" for number in range(40))
_GONE = "x\n" * 9
# The group of a block, the files that contain it, its first line and the line after its last.
Block = tuple[str, str, int, int]


def _duplicates_by_path(blocks: list[Block]) -> dict[bytes, list[Duplicate]]:
    duplicates: dict[bytes, list[Duplicate]] = {}
    for group, paths, line, end_line in blocks:
        for path in paths:
            duplicates.setdefault(path.encode(), []).append(
                Duplicate(
                    path=path, line=line, end_line=end_line, lines=10, copies=len(paths), group=group,
                    other_path=paths[0], other_line=1,
                )
            )  # fmt: skip
    return duplicates


@pytest.mark.parametrize(
    ("old", "new", "rows"),
    [
        ([("g", "ab", 1, 11)], [("g", "ab", 5, 15)], [("unchanged", ("g",), ("g",))]),
        ([], [("g", "ab", 1, 11)], [("new", None, ("g",))]),
        ([("g", "ab", 1, 11)], [], [("fixed", ("g",), None)]),
        ([("g", "az", 1, 11)], [], [("removed", ("g",), None)]),
        ([("g", "ab", 1, 11)], [("g", "abc", 1, 11)], [("worsened", ("g",), ("g",))]),
        ([("g", "abc", 1, 11)], [("g", "ab", 1, 11)], [("improved", ("g",), ("g",))]),
        # Both copies were edited, or the block is longer.
        ([("g", "ab", 1, 11)], [("h", "ab", 1, 14)], [("changed", ("g",), ("h",))]),
        ([("g", "ab", 1, 11)], [("h", "abc", 1, 14)], [("worsened", ("g",), ("h",))]),
        # The block was split.
        (
            [("g", "ab", 1, 31)],
            [("h", "ab", 1, 12), ("i", "ab", 18, 31)],
            [("changed", ("g",), ("h",)), ("changed", ("g",), ("i",))],
        ),
        # The other copy has no record, because a longer block covers it: here the block lost its last line.
        ([("g", "a", 1, 13)], [("h", "a", 1, 12)], [("changed", ("g",), ("h",))]),
        ([("g", "a", 1, 12)], [("h", "a", 1, 13)], [("removed", ("g",), None), ("new", None, ("h",))]),
        ([("g", "a", 1, 12)], [("h", "a", 4, 19)], [("removed", ("g",), None), ("new", None, ("h",))]),
        # Other blocks cover the same lines.
        (
            [("g", "ac", 1, 14), ("h", "bz", 3, 18)],
            [("i", "ab", 3, 14)],
            [("removed", ("h",), None), ("changed", ("g",), ("i",))],
        ),
        # One file now duplicates other code; another place was duplicated.
        ([("g", "ab", 1, 11)], [("h", "ac", 1, 11)], [("new", None, ("h",)), ("fixed", ("g",), None)]),
        ([("g", "ab", 1, 11)], [("h", "ab", 20, 31)], [("fixed", ("g",), None), ("new", None, ("h",))]),
        # The new block begins behind the last line of the old one.
        ([("g", "ab", 1, 11)], [("h", "ab", 11, 21)], [("fixed", ("g",), None), ("new", None, ("h",))]),
    ],
)
def test_copied_code_is_classified(old: list[Block], new: list[Block], rows: list[tuple[object, ...]]) -> None:
    tree = dict.fromkeys("abc", _TEXT)
    compared = compare_duplicates(
        _duplicates_by_path(old), _duplicates_by_path(new), TextTrees({**tree, "z": _GONE}, tree)
    )
    states = [(row.state, fields(row.old, "group"), fields(row.new, "group")) for row in compared]
    assert sorted(states, key=str) == sorted(rows, key=str)
