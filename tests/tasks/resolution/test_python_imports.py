"""Tests of the two forms of Python imports: of a module, and of a name in a module."""

from __future__ import annotations

import pytest

from codebatch_workers.symbols.outline import file_outline
from tests.support.source_files import source
from tests.tasks.resolution.resolving import answer, resolver, tree
from tests.tasks.resolution.test_resolution import PYTHON


@pytest.mark.parametrize(
    ("path", "target", "resolution", "files"),
    [
        ("src/app/core.py", "app.sub.leaf", "exact", "src/app/sub/leaf.py"),
        ("src/app/core.py", "app.sub", "exact", "src/app/sub/__init__.py"),
        ("src/app/core.py", "app.space.inner", "exact", "src/app/space/inner.py"),
        # There is no such module: only the beginning of the name is one.
        ("src/app/core.py", "app.sub.bogus", "file", "src/app/sub/__init__.py"),
        ("src/app/core.py", "app.bogus", "file", "src/app/__init__.py"),
        ("src/app/core.py", "app.six.moves", "file", "src/app/six.py"),
        ("tests/test_app.py", "app.bogus", "file", "src/app/__init__.py"),
        ("tests/test_app.py", "renamed.bogus", "external", ""),
        ("other/check.py", "renamed.part", "exact", "other/mapped/part.py"),
        ("other/check.py", "renamed.bogus", "file", "other/mapped/__init__.py"),
        ("src/app/core.py", "app.bogus.deeper", "external", ""),
        ("tools/run.py", "os.path", "external", ""),
    ],
)
def test_whole_module_import_is_not_a_name_in_its_package(path: str, target: str, resolution: str, files: str) -> None:
    resolved = resolver(PYTHON).resolve(path, "python", target, is_module=True)
    assert (resolved.resolution, " ".join(resolved.paths)) == (resolution, files)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("space.two.name", ("file", "b/src/space/two.py")),
        ("space.both.name", ("file", "a/src/space/both.py")),  # The nearest part of the package.
        ("space.other", ("external", "")),
    ],
)
def test_package_without_init_spans_directories(target: str, expected: tuple[str, str]) -> None:
    files = tree("a/src/space/one.py a/src/space/both.py b/src/space/two.py b/src/space/both.py")
    assert answer(files, "a/src/space/one.py", "python", target) == expected


def test_package_with_init_is_in_one_directory() -> None:
    files = tree("a/src/full/__init__.py a/src/full/one.py b/src/full/two.py")
    assert answer(files, "a/src/full/one.py", "python", "full.two") == ("exact", "a/src/full/__init__.py")


def test_module_import_is_distinguished_from_name_import() -> None:
    content = "import a.b, a.b as c, d\nfrom a import b\nfrom . import e\nfrom a.b import *\nimport a . b\n"
    edges = file_outline(source("m.py", content)).edges
    assert [(edge.target, edge.is_module) for edge in edges] == [
        ("a.b", True), ("a.b", True), ("d", False), ("a.b", False), (".e", False), ("a.b.*", False), ("a.b", True)
    ]  # fmt: skip
