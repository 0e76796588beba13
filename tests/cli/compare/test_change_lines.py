"""Lines of changes name each path once: the old path only if the file was renamed."""

from __future__ import annotations

import pytest
from msgspec import UNSET, UnsetType

from codebatch.cli.answers.differences import change_line, change_text
from codebatch.compare.differences import Change, ComparedRecord
from codebatch.compare.metrics import ImplicitZeroMetric
from codebatch.model.record import Diagnostic, Edge, Metric, Severity, Symbol


def _finding(path: str, line: int, *, severity: Severity = "error", cell: int | UnsetType = UNSET) -> Diagnostic:
    return Diagnostic(
        path=path, line=line, column=5, end_line=line, end_column=6, severity=severity, code="E1", message="m",
        tool="t", cell=cell, cell_line=cell,
    )  # fmt: skip


def _function(path: str, line: int, *, name: str = "f") -> Symbol:
    return Symbol(
        path=path, name=name, qualified=name, scope="", symbol_type="function", line=line, column=1, end_line=line,
        end_column=2,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            ImplicitZeroMetric(path="a.py", metric="duplicated_lines", value=0),
            Metric(path="a.py", metric="duplicated_lines", value=63),
            "a.py: duplicated_lines = 63 (was 0)",
        ),
        (
            ImplicitZeroMetric(path="old.py", metric="duplicated_lines", value=0),
            Metric(path="a.py", metric="duplicated_lines", value=63),
            "a.py: duplicated_lines = 63 (was 0 in old.py)",
        ),
        (
            Metric(path="old.py", metric="complexity", value=2, symbol="g", line=7),
            Metric(path="a.py", metric="complexity", value=3, symbol="f", line=9),
            "a.py:9: f complexity = 3 (was 2 in old.py:7)",
        ),
        (
            Metric(path="a.py", metric="complexity", value=3, symbol="f", line=7),
            Metric(path="a.py", metric="complexity", value=3, symbol="f", line=9),
            "a.py:9: f complexity = 3 (was line 7)",
        ),
        (_finding("a.py", 3), _finding("a.py", 9), "a.py:9:5: error E1 m [t] (was line 3:5)"),
        (_finding("a.py", 3), _finding("a.py", 3), "a.py:3:5: error E1 m [t]"),
        (_finding("old.py", 3), _finding("a.py", 3), "a.py:3:5: error E1 m [t] (was old.py:3:5)"),
        (
            _finding("old.py", 3, severity="hint"),
            _finding("a.py", 3),
            "a.py:3:5: error E1 m [t] (was hint)",
        ),
        (
            _finding("a.ipynb", 3, cell=1),
            _finding("a.ipynb", 9, cell=2),
            "a.ipynb:9:5 (cell 2, line 2): error E1 m [t] (was line 3:5 (cell 1, line 1))",
        ),
        (_function("a.py", 3), _function("a.py", 9, name="g"), "a.py:9:1: function g (was function f)"),
        (_function("old.py", 3), _function("a.py", 9), "a.py:9:1: function f (was old.py:3:1)"),
        (
            _function("old.py", 3),
            _function("a.py", 9, name="g"),
            "a.py:9:1: function g (was function f in old.py:3:1)",
        ),
        (
            Edge(path="a.py", edge_type="imports", source="", target="b", line=1, resolution="external"),
            Edge(path="a.py", edge_type="imports", source="", target="b", line=2, resolution="exact"),
            "a.py:2: (file) imports b (exact) (was (file) imports b (external))",
        ),
    ],
)  # fmt: skip
def test_line_names_each_path_once(old: ComparedRecord, new: ComparedRecord, line: str) -> None:
    change = Change("changed", old, new)
    assert change_line(change) == line
    place, _, text = line.partition(": ")
    assert change_text(change) == text
    assert place.startswith(new.path or "")
