"""Small report contents for tests."""

from __future__ import annotations

from codebatch.report.contents import ReportContents, ReportNumbers, ReportTotals, ReportTree
from codebatch.report.gathering import FileSums
from codebatch.report.limits import ReportLimits
from codebatch.report.tree import cut_tree


def file(path: str, code: int = 10, **metrics: int) -> FileSums:
    """Return a Python file with its metrics."""
    return FileSums(key=path.encode(), path=path, language="python", metrics={"code": code, **metrics})


def contents(tree: ReportTree | None = None, title: str = "made", *, incomplete: str = "") -> ReportContents:
    """Return a report that has a tree and no other contents."""
    return ReportContents(
        title=title,
        batch_id="batch-1",
        snapshot_id="snap-1",
        made_at="2026-01-01 00:00 UTC",
        pipeline="full",
        paths=[],
        incomplete=incomplete,
        history_note="",
        asked=["diagnostic", "duplicate", "edge", "file", "metric"],
        numbers=ReportNumbers(
            files=0,
            code_files=0,
            code=0,
            functions=0,
            cognitive=0,
            production=0,
            production_duplicated=0,
            partly_parsed=0,
            failures=0,
            findings={},
            languages={},
            left_out={},
        ),
        tree=tree or cut_tree([], ReportLimits(), None),
        functions=[],
        copies=[],
        matrix=None,
        cycles=[],
        rules=[],
        since=None,
        in_all=ReportTotals(functions=0, functions_left_out=0, copies=0, copies_left_out=0, cycles=0, rules=0, hints=0),
    )
