"""Unused imports and variables of Python in `lint`, from ruff's rules, compared with pyflakes."""

from __future__ import annotations

import ast
import tempfile
from collections.abc import Iterable
from pathlib import Path

from pyflakes import checker, messages

from codebatch_workers.lint.python.ruff import RuffRunner
from codebatch_workers.syntax.source import SourceFile
from tests.oracles.agreement import Agreement, Fact, compare

_CODES = {"F401": "import", "F841": "variable"}
_MESSAGES = {messages.UnusedImport: "import", messages.UnusedVariable: "variable"}


def agree(files: Iterable[SourceFile]) -> Agreement:
    """Compare unused names by file and line.

    `__init__.py` files are left out, because other modules import names from them.
    """
    actual_facts: list[Fact] = []
    expected_facts: list[Fact] = []
    sources = []
    for file in files:
        path = file.path.decode()
        try:
            tree = ast.parse(file.text)
        except (SyntaxError, ValueError):
            continue
        if path.endswith("__init__.py"):
            continue
        sources.append(file)
        expected_facts.extend(
            (_MESSAGES[type(message)], path, message.lineno)
            for message in checker.Checker(tree, path).messages
            if type(message) in _MESSAGES
        )
    with tempfile.TemporaryDirectory() as scratch:
        for file, diagnostics in zip(sources, RuffRunner(_CODES, Path(scratch)).check(sources), strict=True):
            actual_facts.extend(
                (_CODES[diagnostic.code], file.path.decode(), diagnostic.line)
                for diagnostic in diagnostics
                if diagnostic.code in _CODES
            )
    return compare(actual_facts, expected_facts)
