"""Contents of a report: trees that are cut without losing lines of code, and the matrix of imports with its cycles."""

from __future__ import annotations

from itertools import pairwise

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from codebatch.query.answers.dependencies import FileImport
from codebatch.report.contents import ReportTree
from codebatch.report.limits import ReportLimits, cut_path, cut_text
from codebatch.report.matrix import group_files, make_matrix
from codebatch.report.tree import TREE_DEPTH_MAX, cut_tree

from .made import file

PATHS = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=5).map("/".join), unique=True, max_size=30)


def _sizes_by_path(tree: ReportTree) -> dict[str, tuple[int, int]]:
    """Return the numbers of files and of lines of code by path.

    A row that stands for several files has the path of their directory, with a trailing slash.
    """
    paths = [""]
    for name, parent in list(zip(tree.names, tree.parents, strict=True))[1:]:
        paths.append(f"{paths[parent]}/{name}")
    rows = zip(paths, tree.files, tree.code, strict=True)
    return {path: (files, code) for path, files, code in rows if files}


def test_small_tree_is_complete_and_in_path_order() -> None:
    files = [file("b/y.py", 5, cognitive=7), file("b/x.py", 9, max_cognitive=3), file("a.py", 1), file("empty.py", 0)]
    tree = cut_tree(files, ReportLimits(), {b"b/x.py": 4})
    assert tree.names == ["", "a.py", "b", "x.py", "y.py"]
    assert tree.parents == [0, 0, 0, 2, 2]
    assert (tree.files, tree.code) == ([0, 1, 0, 1, 1], [0, 1, 0, 9, 5])
    assert (tree.cognitive, tree.hardest, tree.changes) == ([0, 0, 0, 0, 7], [0, 0, 0, 3, 0], [0, 0, 0, 4, 0])
    assert cut_tree(files, ReportLimits(), None).changes is None


def test_files_beyond_the_limit_are_one_row_of_their_directory() -> None:
    files = [file("a/b/big.py", 50), file("a/b/small.py", 3), file("a/c/small.py", 2), file("small.py", 1)]
    assert _sizes_by_path(cut_tree(files, ReportLimits(nodes=7), None)) == {
        "/a/b/big.py": (1, 50),
        "/": (1, 1),
        "/a/": (1, 2),
        "/a/b/": (1, 3),
    }


@given(PATHS, st.integers(1, 60))
def test_cut_tree_preserves_totals_and_respects_limits(paths: list[str], nodes: int) -> None:
    files = [file(path, len(path) + place) for place, path in enumerate(paths)]
    tree = cut_tree(files, ReportLimits(nodes=nodes), None)
    assert len(tree.names) <= max(nodes, 2)
    assert sum(tree.files) == len(files)
    assert sum(tree.code) == sum(file_sums["code"] for file_sums in files)
    assert all(parent < place for place, parent in enumerate(tree.parents) if place)
    assert {len(column) for column in msgspec.to_builtins(tree).values() if column is not None} - {
        len(tree.names)
    } == set()


def test_deep_path_is_limited_to_the_maximum_depth() -> None:
    tree = cut_tree([file("d/" * 500 + "f.py")], ReportLimits(), None)
    assert len(tree.names) == TREE_DEPTH_MAX + 2
    assert tree.names[-1].startswith("d/d/")
    assert len(tree.names[-1]) == ReportLimits().text + 1


def _import(source: str, target: str) -> FileImport:
    return FileImport(source, target, 1, "exact")


def test_matrix_lists_importers_first_and_cycles_below_the_diagonal() -> None:
    imports = [
        _import("app/a.py", "model/m.py"),
        _import("app/a.py", "app/b.py"),
        _import("model/m.py", "base/x.py"),
        _import("base/x.py", "model/m.py"),
        _import("model/n.py", "base/x.py"),
        _import("model/n.py", "model/n.py"),
        FileImport("base/x.py", "app/a.py", 1, "name"),
    ]
    matrix = make_matrix(imports, 10, 99)
    assert matrix is not None
    assert matrix.directories == ["app", "model", "base"]
    assert (matrix.files, matrix.inside, matrix.cycles) == ([2, 2, 1], [1, 0, 0], [0, 1, 1])
    assert matrix.cells == [(0, 1, 1), (1, 2, 2), (2, 1, 1)]
    assert make_matrix(imports[-2:], 10, 99) is None


def test_group_files_splits_directories_up_to_the_limit() -> None:
    paths = ["a/x/1", "a/x/2", "a/y/1", "b/1", "top"]
    assert group_files(paths, 2) == dict.fromkeys(paths, ".")
    assert set(group_files(paths, 3).values()) == {"a", "b", "."}
    assert group_files(paths, 4) == {"a/x/1": "a/x", "a/x/2": "a/x", "a/y/1": "a/y", "b/1": "b", "top": "."}


@given(PATHS, st.integers(1, 20))
def test_group_files_assigns_every_file_to_one_of_few_parents(paths: list[str], most: int) -> None:
    groups = group_files(paths, most)
    assert groups.keys() == set(paths)
    assert len(set(groups.values())) <= most
    assert all(directory == "." or path.startswith(f"{directory}/") for path, directory in groups.items())


def test_long_text_is_cut_at_the_end_and_a_path_at_the_front() -> None:
    assert (cut_text("abc", 3), cut_text("abcd", 3)) == ("abc", "abc…")
    assert (cut_path("a/b", 3), cut_path("aa/b", 3)) == ("a/b", "…a/b")


def test_limits_are_halved_down_to_1() -> None:
    each = ReportLimits()
    for _ in range(20):
        each = each.halved_limits()
    assert set(msgspec.structs.asdict(each).values()) == {1}
    assert each.halved_limits() == each
    assert all(one > other for one, other in pairwise([ReportLimits().nodes, ReportLimits().halved_limits().nodes]))
