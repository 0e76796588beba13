"""Which findings are part of a change: those in lines that it added or modified."""

from __future__ import annotations

import pytest

from codebatch.model.record import Diagnostic
from codebatch.operations.gate.changed_lines import TouchedLines


@pytest.mark.parametrize(
    ("line", "end_line", "is_touched"),
    [(3, 3, False), (3, 4, True), (4, 4, True), (5, 5, True), (5, 0, True), (6, 6, False), (2, 9, True), (6, 1, False)],
)
def test_finding_is_on_changed_lines_if_its_range_includes_one(line: int, end_line: int, is_touched: bool) -> None:
    """The change touched the lines 4 and 5."""
    lines = TouchedLines({b"b.py": [range(1, 9)], b"a.py": [range(4, 6), range(20, 21)]})
    finding = Diagnostic(
        path="a.py",
        line=line,
        column=1,
        end_line=end_line,
        end_column=1,
        severity="error",
        code="c",
        message="m",
        tool="t",
    )
    assert lines.has(finding) == is_touched
