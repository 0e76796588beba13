"""Tests of the independence of file tasks: the result for a file depends only on its cache key, not on its unit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codebatch.coordinator.analysis.planning import resolve_tasks
from codebatch.model.entry import Entry
from codebatch.model.plan import visible_contexts
from codebatch.model.task import JsonValue
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.entry_points import load_declaration
from codebatch.plugins.settings import task_contexts
from codebatch_workers.runtime.execution import TaskRunner
from codebatch_workers.runtime.results import TaskFailure
from codebatch_workers.syntax.source import SourceFile
from tests.support.source_files import Snapshot

FILE_TASKS = ("parse", "analyze", "symbols", "lint")
PROJECT = {"lint": {"ruff": {"config": "project"}}}

Results = dict[tuple[bytes, str], bytes]


class Units:
    """The files of a tree, which tasks process in units."""

    def __init__(
        self,
        files: Mapping[bytes, bytes],
        scratch: Path,
        overrides: Mapping[str, Mapping[str, JsonValue]] | None = None,
    ) -> None:
        tasks = resolve_tasks(TaskCatalogue(), FILE_TASKS, overrides)
        snapshot = Snapshot(content=files)
        contexts: dict[str, Callable[[Entry], bytes]] = {}
        for task in tasks:
            for name, context in task_contexts(load_declaration(TaskCatalogue(), task.name), task.config).items():
                contexts[name] = context(snapshot)
        self._runner = TaskRunner(TaskCatalogue(), tasks, scratch)
        self._seen = visible_contexts(tasks)
        self._files = [
            (files[entry.path], entry.path, {name: context(entry) for name, context in contexts.items()})
            for entry in snapshot.entries
        ]

    @property
    def keys(self) -> dict[tuple[bytes, str], tuple[object, ...]]:
        """The parts of the cache key of each result other than the key of its task."""
        return {
            (path, task): (content, _is_executable(path), {name: contexts[name] for name in self._seen[task]})
            for content, path, contexts in self._files
            for task in FILE_TASKS
        }

    def run_units(self, units: Iterable[Sequence[int]], tasks: Sequence[str] = FILE_TASKS) -> Results:
        """Return the results of tasks for the items of some units."""
        results_by_key: Results = {}
        for unit in units:
            sources = [self._source(item) for item in unit]
            results = [self._runner.run_item(source, tasks) for source in sources]
            for source in sources:
                source.release()
            for task in tasks:
                done = self._runner.complete_results(
                    task, sources, [result_by_task[task] for result_by_task in results]
                )
                for source, result in zip(sources, done, strict=True):
                    results_by_key[source.path, task] = (
                        f"failed: {result.reason}".encode()
                        if isinstance(result, TaskFailure)
                        else msgspec.json.Encoder().encode_lines(result)
                    )
        return results_by_key

    def run_separately(self) -> Results:
        """Return the results with a unit for each file."""
        return self.run_units([item] for item in range(len(self._files)))

    def run_together(self, *, backwards: bool = False) -> Results:
        """Return the results with one unit of all files."""
        items = range(len(self._files))
        return self.run_units([items[::-1] if backwards else items])

    def _source(self, item: int) -> SourceFile:
        content, path, contexts = self._files[item]
        return SourceFile(path, content, executable=_is_executable(path), contexts=contexts)


def _is_executable(path: bytes) -> bool:
    return path.endswith(b".sh")


UNUSED = b"import os\n"
MIXED = {
    b".gitattributes": b"gen/* linguist-generated\n*.inc linguist-language=PHP\nvendor/** linguist-vendored\n",
    b"a.c": b"#define X(a) a\nint main(void) { if (1) return X(2); }\n",
    b"a.h": b"class A;\nint f(int a) { return a; }\n",
    b"b/a.h": b"class A { int x; };\n",
    b"b/a.cc": b"#include \"a.h\"\nnamespace n { int f() { return 1; } }\n",
    b"page.html": b"<html><script>var a = 1;</script><p>x</p>\n",
    b"style.css": b"a { color: red }\na { }\n",
    b"main.go": b"package main\nimport \"fmt\"\nfunc main() { fmt.Println(1) // TODO x\n}\n",
    b"lib.rs": b"mod a;\npub fn f<T>(x: T) -> T { x }\n",
    b"Main.java": b"import java.util.List;\nclass Main extends Base { int f() { return 1; } }\n",
    b"web/a.ts": b"import { b } from './b';\nimport c from 'c';\nexport const a: number = b;\n",
    b"web/a.js": b"const a = require('x'), b = 2;\nif (a) { b == 1 }\n<<<<<<< HEAD\n",
    b"web/min.js": b"var a=1;" * 500,
    b"x.rb": b"require_relative 'y'\nclass A < B\n def f; end\nend\n",
    b"x.inc": b"<?php\nclass A { function f() { return g(); } }\n",
    b"run.sh": b"#!/bin/sh\nif true; then\n  echo $1\nfi\n",
    b"notes.md": b"# A\n\n```py\nx = 1\n```\ntrailing  \n",
    b"d.json": b"{\"a\": [1, 2,]}\n",
    b"d.yaml": b"a: 1\na: 2\n",
    b"empty.py": b"",
    b"bin": b"\0\1\2",
    b"gen/x.py": b"import os\nx = (\n",
    b"vendor/y.py": UNUSED,
    b"py/__init__.py": b"import other\nimport py.m\nfrom . import m\n",
    b"py/m.py": b"import os\nimport py.m\ndef f(x=[]):\n    return x is 1  # noqa: F632\n",
    b"other.py": b"def f():\n  return\nreturn 1\n",
    b"utf16.py": "x = 'ü'\n".encode("utf-16"),
    b"latin.py": b"# -*- coding: latin-1 -*-\nx = '\xfc' ; import os\n",
    b"tool": b"#!/usr/bin/env python3\nimport os\n",
}  # fmt: skip

# Names for which other files of the tree could mislead ruff, which gets its files by name.
HOSTILE = {
    b".gitattributes": b"*.dat linguist-language=Python\n- linguist-language=Python\n",
    b"-": UNUSED,
    b"@b.py": UNUSED,
    b"a b.py": UNUSED,
    b"A/m.py": b"import A.m\nimport os\n",
    b"a/m.py": b"import a.m\nimport os\n",
    b"a/__init__.py": b"import os\nimport a.m\nimport d\n",
    b"a/x.dat": b"import a.x\nimport os\nfrom a import x\n",
    b"a/__init__.py.d/m.py": UNUSED,
    b"b/__init__.py/m.py": b"import b.m\nimport os\n",
    b"b/c/__init__.py": b"import b\nimport a\n",
    b"d.py": b"def f(): yield\n",
    b"d.pyi": b"import os as os\ndef f(): ...\ndef f(): ...\n",
    b"d\xff/m.py": b"import os\nimport m\n",
    b"d\xff/__init__.py": b"from d import m\nimport os\n",
    b"d\\xff/m.py": b"import os\nimport m\n",
    b"n\xfe.py": UNUSED,
    b"n\\xfe.py": b"import re\n",
    b"n\xfe.pyi": UNUSED,
    b"line\nend.py": UNUSED,
    b"book.ipynb": b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}\n',
    b"code.dat": UNUSED,
    b"codebatch-alone-0/x.py": UNUSED,
    b"pyproject.toml": b"[tool.ruff]\nlint.select = ['D100']\n",
    b"ruff.toml": b"broken",
    b"/".join([b"e" * 200] * 11) + b"/x.py": UNUSED,
    b"/".join([b"f" * 200] * 11) + b"/x.py": b"import re\n",
    b"\xfa" * 250 + b".py": UNUSED,
    b"\xfb" * 250 + b".py": b"import re\n",
}


# The escaped form of one name is in the package of the other.
ESCAPED = {b"p\xff/m.py": b"from . import m\nprint(m)\n", b"p\\xff/__init__.py": UNUSED}


@pytest.mark.slow
@pytest.mark.parametrize("files", [MIXED, HOSTILE, ESCAPED], ids=["mixed", "hostile", "escaped"])
def test_results_of_a_file_do_not_depend_on_its_unit(files: Mapping[bytes, bytes], tmp_path: Path) -> None:
    units = Units(files, tmp_path)
    separate = units.run_separately()
    assert separate == units.run_together() == units.run_together(backwards=True)
    for task in FILE_TASKS[1:]:
        assert units.run_units([range(len(files))], [task]).items() <= separate.items()
    assert not [key for key, result in separate.items() if result.startswith(b"failed")]


@pytest.mark.slow
def test_results_with_project_rules_do_not_depend_on_the_unit(tmp_path: Path) -> None:
    configured = {
        b"ruff.toml": b"extend = 'more/base.toml'\nlint.per-file-ignores = {'a/x.dat' = ['F401']}\n",
        b"more/base.toml": b"lint.select = ['ALL']\n",
        b"a/pyproject.toml": b"[tool.ruff]\nlint.select = ['F', 'D']\nnamespace-packages = ['a/n']\n",
        b"a/n/p/__init__.py": UNUSED,
        b"a/n/x.py": UNUSED,
        b"a/q/__init__.py": b"import z\n",
        b"a/z.py": UNUSED,
        b"d\xff/ruff.toml": b"lint.select = ['D']\n",
        b"d\\xff/ruff.toml": b"lint.select = ['E']\n",
    }
    units = Units({**HOSTILE, b"pyproject.toml": b"[project]\nversion = '1'\n", **configured}, tmp_path, PROJECT)
    separate = units.run_separately()
    assert separate == units.run_together() == units.run_together(backwards=True)
    assert not [key for key, result in separate.items() if result.startswith(b"failed")]


@pytest.mark.slow
def test_unreadable_ruff_configuration_fails_only_files_below_it(tmp_path: Path) -> None:
    files = {b"x/ruff.toml": b"broken", b"x/y.py": UNUSED, b"z.py": UNUSED}
    results = Units(files, tmp_path, PROJECT).run_together()
    assert {key for key, value in results.items() if value.startswith(b"failed")} == {(b"x/y.py", "lint")}


_NAMES = [b"__init__.py", b"m.py", b"m.pyi", b"n.dat", b"tool", b"x\xff.py", b"x\\xff.py"]
_PATHS = [b"/".join(filter(None, (directory, name))) for directory in (b"", b"a", b"a/b", b"A") for name in _NAMES]
_SOURCES = [b"import a\nimport m\nimport a.m\n", b"#!/usr/bin/python3\nfrom . import m\nimport tool\n", b"x = (\n"]
_RUFF_FILES = {
    b"pyproject.toml": [b"[project]\nversion = '1'\n", b"[project]\nrequires-python = '>=3.12'\n[tool.ruff]\n"],
    b"a/ruff.toml": [b"lint.select = ['E', 'D']\n", b"extend = '../more.toml'\n"],
    b"more.toml": [b"lint.select = ['F', 'UP']\n", b"line-length = 10\nlint.select = ['E501']\n"],
}
_ATTRIBUTES = [b"*.dat linguist-language=Python", b"a/* linguist-generated", b"tool linguist-language=Ruby"]
_trees = st.builds(
    lambda sources, ruff, attributes: {
        b"more.toml": b"", **sources, **ruff, b".gitattributes": b"".join(line + b"\n" for line in attributes)
    },
    st.dictionaries(st.sampled_from(_PATHS), st.sampled_from(_SOURCES), max_size=10),
    st.fixed_dictionaries({}, optional={path: st.sampled_from(texts) for path, texts in _RUFF_FILES.items()}),
    st.lists(st.sampled_from(_ATTRIBUTES), max_size=2),
)  # fmt: skip


@pytest.mark.slow
@given(before=_trees, after=_trees, overrides=st.sampled_from([{}, PROJECT]))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_equal_keys_have_equal_results_in_any_two_trees(
    before: Mapping[bytes, bytes],
    after: Mapping[bytes, bytes],
    overrides: Mapping[str, Mapping[str, JsonValue]],
    tmp_path: Path,
) -> None:
    units, units_after = (Units(tree, tmp_path, overrides) for tree in (before, {**before, **after}))
    results, results_after = units.run_together(), units_after.run_together()
    keys, keys_after = units.keys, units_after.keys
    for key, result in results.items():
        if keys[key] == keys_after[key]:
            assert result == results_after[key], key
