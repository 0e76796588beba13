"""Excerpts of source for a report: duplicate blocks side by side, and an example of each rule."""

from __future__ import annotations

from codebatch.model.entry import display_path
from codebatch.operations.queries.duplicate_blocks import DuplicateBlock
from codebatch.operations.queries.findings import RuleFindings
from codebatch.query.filters.filters import path_bytes
from codebatch.report.contents import CopiedBlock, ReportRule
from codebatch.report.excerpts import ExcerptReader
from codebatch.report.limits import ReportLimits, cut_path, cut_text

LOCATIONS_SIDE_BY_SIDE = 2
"""Number of locations of a duplicate block that are shown side by side."""


def make_copied_block(block: DuplicateBlock, excerpts: ExcerptReader, limits: ReportLimits) -> CopiedBlock:
    """Return a duplicate block with source from its first SIDES locations. Raises StoreCorrupt."""
    complete = [(place, end) for place in block.locations if isinstance(end := place.end_line, int)]
    displayed = [
        excerpts.read(place.path_bytes, place.line, min(end - 1, place.line + limits.copied_lines - 1))
        for place, end in complete[:LOCATIONS_SIDE_BY_SIDE]
    ]
    other_locations = [
        place for place in block.locations if place not in [place for place, _ in complete[:LOCATIONS_SIDE_BY_SIDE]]
    ]
    return CopiedBlock(
        lines=block.lines,
        copies=block.copies,
        shown=displayed,
        others=[
            (cut_path(display_path(place.path_bytes), limits.text), place.line)
            for place in other_locations[: limits.places]
        ],
    )


def make_report_rule(rule: RuleFindings, excerpts: ExcerptReader, limits: ReportLimits) -> ReportRule:
    """Return the findings of a rule. The first one is the example. Raises StoreCorrupt."""
    first = rule.findings[0]
    line, column, end_line, end_column = (
        value if isinstance(value := first.get(name), int) else 1
        for name in ("line", "column", "end_line", "end_column")
    )
    is_of_one_line = end_line == line and end_column > column
    return ReportRule(
        code=cut_text(rule.code, limits.text),
        tool=cut_text(rule.tool, limits.text),
        severity=rule.severity,
        count=rule.count,
        files=rule.files,
        apart=rule.non_production,
        message=cut_text(str(first.get("message", "")), limits.text),
        column=column,
        width=end_column - column if is_of_one_line else 0,
        example=excerpts.read(path_bytes(first), line, line),
    )
