"""Tests of queries about the paths of a snapshot, at their limits."""

from __future__ import annotations

import pytest

from codebatch_workers.resolution.configuration_files import DOCUMENT_BYTES_MAX
from codebatch_workers.resolution.tree import FITTING_FILES_MAX, PathTree, nearest_paths, relative_to
from tests.tasks.resolution.resolving import project_resolver


@pytest.mark.parametrize(
    ("directory", "import_path", "expected"),
    [
        ("a/b", "../c/./d", "a/c/d"),
        ("a/b", "../..", ""),
        ("a/b", "../../..", None),
        ("", "..", None),
        ("a", "b/../../../c", None),
        ("a", "/c", None),
    ],
)
def test_written_path_never_leaves_the_tree(directory: str, import_path: str, expected: str | None) -> None:
    assert relative_to(directory, import_path) == expected


def test_nearest_path_shares_the_longest_prefix() -> None:
    assert nearest_paths("a/b/c", ["a/x", "a/b/x", "a/b/y", "x/b/c"]) == ["a/b/x", "a/b/y"]
    assert nearest_paths("a/b", ["x/b", "y/b"]) == ["x/b", "y/b"]


@pytest.mark.parametrize(
    ("count", "resolution"), [(1, "file"), (FITTING_FILES_MAX, "name"), (FITTING_FILES_MAX + 1, "external")]
)
def test_name_that_matches_too_many_files_is_external(count: int, resolution: str) -> None:
    files = [f"d{number}/acme/{name}.py" for number in range(count) for name in ("__init__", "util")]
    resolved = project_resolver(PathTree(["tests/a.py", *files], lambda _: b"")).resolve(
        "tests/a.py", "python", "acme.util"
    )
    assert (resolved.resolution, len(resolved.paths)) == (resolution, count if resolution != "external" else 0)


@pytest.mark.parametrize(("size", "resolution"), [(DOCUMENT_BYTES_MAX, "exact"), (DOCUMENT_BYTES_MAX + 1, "external")])
def test_oversized_configuration_file_is_not_read(size: int, resolution: str) -> None:
    files = {"go.mod": b"module acme.org/x\n//".ljust(size, b" "), "a/a.go": b"", "b/b.go": b""}
    assert project_resolver(PathTree(files, files.get)).resolve("a/a.go", "go", "acme.org/x/b").resolution == resolution
