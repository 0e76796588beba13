"""Copied code of two trees: only what was not copied before is new."""

from __future__ import annotations

import pytest

from codebatch.compare.duplicates import compare_duplicates
from codebatch.model.record import Duplicate
from tests.compare.trees import TextTrees, fields

_TEXT = "".join(f"{number}\n" for number in range(40))
_GONE = "x\n" * 9
# Of a block: its group, the files that have it, its first line and the one behind its last.
Block = tuple[str, str, int, int]


def _duplicates_by_path(blocks: list[Block]) -> dict[bytes, list[Duplicate]]:
    found: dict[bytes, list[Duplicate]] = {}
    for group, paths, line, end_line in blocks:
        for path in paths:
            found.setdefault(path.encode(), []).append(
                Duplicate(
                    path=path, line=line, end_line=end_line, lines=10, copies=len(paths), group=group,
                    other_path=paths[0], other_line=1,
                )
            )  # fmt: skip
    return found


@pytest.mark.parametrize(
    ("old", "new", "rows"),
    [
        ([("g", "ab", 1, 11)], [("g", "ab", 5, 15)], [("unchanged", ("g",), ("g",))]),
        ([], [("g", "ab", 1, 11)], [("new", None, ("g",))]),
        ([("g", "ab", 1, 11)], [], [("fixed", ("g",), None)]),
        ([("g", "az", 1, 11)], [], [("removed", ("g",), None)]),
        ([("g", "ab", 1, 11)], [("g", "abc", 1, 11)], [("worsened", ("g",), ("g",))]),
        ([("g", "abc", 1, 11)], [("g", "ab", 1, 11)], [("improved", ("g",), ("g",))]),
        # Both were edited, or are longer.
        ([("g", "ab", 1, 11)], [("h", "ab", 1, 14)], [("changed", ("g",), ("h",))]),
        ([("g", "ab", 1, 11)], [("h", "abc", 1, 14)], [("worsened", ("g",), ("h",))]),
        # It was split.
        (
            [("g", "ab", 1, 31)],
            [("h", "ab", 1, 12), ("i", "ab", 18, 31)],
            [("changed", ("g",), ("h",)), ("changed", ("g",), ("i",))],
        ),
        # The other place has no record, since a longer block covers it: here the block lost its last line.
        ([("g", "a", 1, 13)], [("h", "a", 1, 12)], [("changed", ("g",), ("h",))]),
        ([("g", "a", 1, 12)], [("h", "a", 1, 13)], [("removed", ("g",), None), ("new", None, ("h",))]),
        ([("g", "a", 1, 12)], [("h", "a", 4, 19)], [("removed", ("g",), None), ("new", None, ("h",))]),
        # Other blocks cover the same lines.
        (
            [("g", "ac", 1, 14), ("h", "bz", 3, 18)],
            [("i", "ab", 3, 14)],
            [("removed", ("h",), None), ("changed", ("g",), ("i",))],
        ),
        # One of them is a copy of something else now; another place was copied.
        ([("g", "ab", 1, 11)], [("h", "ac", 1, 11)], [("new", None, ("h",)), ("fixed", ("g",), None)]),
        ([("g", "ab", 1, 11)], [("h", "ab", 20, 31)], [("fixed", ("g",), None), ("new", None, ("h",))]),
    ],
)
def test_copied_code_is_classified(old: list[Block], new: list[Block], rows: list[tuple[object, ...]]) -> None:
    tree = dict.fromkeys("abc", _TEXT)
    found = compare_duplicates(
        _duplicates_by_path(old), _duplicates_by_path(new), TextTrees({**tree, "z": _GONE}, tree)
    )
    told = [(row.state, fields(row.old, "group"), fields(row.new, "group")) for row in found]
    assert sorted(told, key=str) == sorted(rows, key=str)
