"""Unused imports and variables of Python: ruff's rules in `lint`, against pyflakes."""

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
    """Unused names by file and line. Files with an `__init__.py` are theirs who import from them: neither is asked."""
    ours: list[Fact] = []
    theirs: list[Fact] = []
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
        theirs.extend(
            (_MESSAGES[type(message)], path, message.lineno)
            for message in checker.Checker(tree, path).messages
            if type(message) in _MESSAGES
        )
    with tempfile.TemporaryDirectory() as scratch:
        for file, found in zip(sources, RuffRunner(_CODES, Path(scratch)).check(sources), strict=True):
            ours.extend((_CODES[each.code], file.path.decode(), each.line) for each in found if each.code in _CODES)
    return compare(ours, theirs)
