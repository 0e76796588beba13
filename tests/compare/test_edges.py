"""Tests of edges in two trees: they are compared by number, not by line."""

from __future__ import annotations

import msgspec
import pytest

from codebatch.compare.edges import compare_edges
from codebatch.model.record import Edge
from tests.compare.trees import TextTrees, fields

_TREES = TextTrees({"a.py": "1\n2\n3", "old.py": "o\n" * 9}, {"a.py": "0\n1\n2\n3", "new.py": "o\n" * 9})


def _call(line: int, target: str = "f", source: str = "") -> Edge:
    return Edge(path="a.py", edge_type="calls", source=source, target=target, line=line)


def _depends(target: str, resolution: str = "exact", imported: str = "m") -> Edge:
    edge = Edge(path="a.py", edge_type="depends", source="", target=target, line=1, imported=imported)
    return msgspec.structs.replace(edge, resolution=resolution)


def _line(record: msgspec.Struct | None) -> object:
    values = fields(record, "line")
    return values and values[0]


@pytest.mark.parametrize(
    ("old", "new", "rows"),
    [
        ([_call(1)], [_call(9)], [("unchanged", 1, 9)]),
        ([_call(1)], [_call(1, "g")], [("removed", 1, None), ("added", None, 1)]),
        ([_call(1)], [_call(1, source="C.m")], [("removed", 1, None), ("added", None, 1)]),
        # The lines determine which of three edges was added.
        (
            [_call(1), _call(3)],
            [_call(1), _call(2), _call(4)],
            [("unchanged", 1, 2), ("unchanged", 3, 4), ("added", None, 1)],
        ),
        ([_call(1), _call(1)], [_call(2)], [("unchanged", 1, 2), ("removed", 1, None)]),
        ([_depends("old.py")], [_depends("new.py")], [("unchanged", 1, 1)]),
        (
            [_depends("old.py", "external")],
            [_depends("new.py", "external")],
            [("removed", 1, None), ("added", None, 1)],
        ),
        ([_depends("old.py")], [_depends("new.py", imported="n")], [("removed", 1, None), ("added", None, 1)]),
        ([_depends("old.py")], [_depends("new.py", "name")], [("removed", 1, None), ("added", None, 1)]),
    ],
)
def test_edges_are_classified(old: list[Edge], new: list[Edge], rows: list[tuple[object, ...]]) -> None:
    compared = compare_edges({b"a.py": old}, {b"a.py": new}, _TREES)
    assert [(row.state, _line(row.old), _line(row.new)) for row in compared] == rows
