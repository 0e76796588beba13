"""Tests of the files of two trees."""

from __future__ import annotations

import msgspec

from codebatch.compare.matching.files import FilePair
from codebatch.compare.tree_files import compare_files
from codebatch.model.digest import Digest
from codebatch.model.entry import Entry


def _tree(**objects: str) -> dict[bytes, Entry]:
    return {
        path.encode(): Entry(path.encode(), "file", path == "run", 1, Digest(object_name))
        for path, object_name in objects.items()
    }


def test_files_of_two_trees_are_classified() -> None:
    old = _tree(edited="1", gone="2", moved="3", renamed="4")
    new = _tree(edited="9", come="2", place="3", other="5")
    new[b"raw\xff"] = Entry(b"raw\xff", "file", False, 1, Digest("6"))
    moved = [FilePair(b"moved", b"place", "content"), FilePair(b"renamed", b"other", "lines")]
    rows = [
        (row.state, row.old and row.old.path_bytes, row.new and row.new.path_bytes)
        for row in compare_files(old, new, moved)
    ]
    assert rows == [
        ("added", None, b"come"),
        ("changed", b"edited", b"edited"),
        ("removed", b"gone", None),
        ("changed", b"renamed", b"other"),
        ("moved", b"moved", b"place"),
        ("added", None, b"raw\xff"),
    ]


def test_executable_bit_is_a_change() -> None:
    plain, executable = _tree(run="1"), _tree(run="1")
    plain[b"run"] = msgspec.structs.replace(plain[b"run"], executable=False)
    assert [row.state for row in compare_files(plain, executable, [])] == ["changed"]
    assert [row.state for row in compare_files(plain, plain, [])] == ["unchanged"]
