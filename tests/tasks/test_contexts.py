"""Tests of contexts: the input of a result other than its file."""

from __future__ import annotations

import subprocess
import sys

import pytest

from codebatch.model.digest import Digest
from codebatch.model.entry import Entry
from codebatch_workers.syntax.contexts import language_context, package_directories, packages_context
from codebatch_workers.tasks import ANALYZE, LINT, PARSE, SYMBOLS
from tests.support.resources import cpu_time_below
from tests.support.source_files import Snapshot


def test_task_declarations_load_no_parser_and_no_ruff() -> None:
    code = (
        "import sys, codebatch_workers.tasks; print([m for m in sys.modules if m.startswith(('tree_sitter', 'ruff'))])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout == "[]\n"


def test_tasks_share_the_same_language_context() -> None:
    assert {task.contexts["language"] for task in (PARSE, ANALYZE, SYMBOLS, LINT)} == {language_context}


@pytest.mark.parametrize(
    ("paths", "header", "expected"),
    [
        (["a.h", "a.c"], "a.h", b"c"),
        (["a.h", "a.cc"], "a.h", b"cpp"),
        (["a.h", "a.cc", "b.c"], "a.h", b"c"),
        (["a.h", "a.cc", "b.c", "c.cpp"], "a.h", b"cpp"),
        (["d/e/a.h", "d/a.cc", "b.c"], "d/e/a.h", b"cpp"),
        (["d/a.h", "d/x.c", "a.cc", "b.cc"], "d/a.h", b"c"),
        (["include/p/a.h", "src/a.cc"], "include/p/a.h", b"cpp"),
        (["lib/include/a.h", "lib/src/a.cc", "x/a.c", "x/b.c"], "lib/include/a.h", b"cpp"),
        (["a.h", "a.py"], "a.h", b""),
        (["a.h", "a.cc"], "a.cc", b""),
    ],
)
def test_header_language_follows_the_nearest_sources(paths: list[str], header: str, expected: bytes) -> None:
    snapshot = Snapshot(*paths)
    context = language_context(snapshot)
    assert context(next(entry for entry in snapshot.entries if entry.path == header.encode())) == expected


def test_packages_are_directories_above_with_init_files() -> None:
    snapshot = Snapshot("__init__.py", "a/__init__.py", "a/b/c/__init__.py", "a/b/c/m.py", "a/b/c/t.txt", "a/b/c/tool")
    context = packages_context(snapshot)
    packages = {entry.path: package_directories(context(entry)) for entry in snapshot.entries}
    assert packages[b"a/b/c/m.py"] == [b"", b"a", b"a/b/c"]
    assert packages[b"a/b/c/tool"] == [b"", b"a", b"a/b/c"]
    assert packages[b"a/b/c/t.txt"] == [b"", b"a", b"a/b/c"]
    assert packages[b"a/__init__.py"] == [b"", b"a"]


@pytest.mark.slow
def test_contexts_of_a_large_tree_are_computed_in_time() -> None:
    paths = [b"d%d/e%d/f%d/n%d.%s" % (i % 50, i % 500, i % 5000, i, (b"c", b"h", b"py")[i % 3]) for i in range(80_000)]
    snapshot = Snapshot()
    snapshot.entries.extend(Entry(path, "file", False, 0, Digest("")) for path in sorted(paths))
    for declared in (language_context, packages_context):
        with cpu_time_below(1.0):
            context = declared(snapshot)
            for entry in snapshot.entries:
                context(entry)
