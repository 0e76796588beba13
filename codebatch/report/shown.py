"""What a report shows of source: copies side by side, and an example of each rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codebatch.model.entry import display_path
from codebatch.model.record import SEVERITIES, Duplicate
from codebatch.query.fields import JsonRecord
from codebatch.query.filters import path_bytes
from codebatch.report.contents import Copied, Rule
from codebatch.report.excerpts import Excerpts
from codebatch.report.gathering import RuleSums
from codebatch.report.limits import Limits, cut, cut_path

SIDES = 2
"""As many copies are shown beside one another."""


def show_copies(duplicates: Mapping[str, Sequence[Duplicate]], excerpts: Excerpts, limits: Limits) -> list[Copied]:
    """The groups of copies that hold most lines more than they need to, those first. Raises StoreCorrupt."""
    groups = {group: found for group, found in duplicates.items() if len(found) > 1}
    ordered = sorted(groups, key=lambda group: (-groups[group][0].lines * (len(groups[group]) - 1), group))
    return [_copied(groups[group], excerpts, limits) for group in ordered[: limits.copies]]


def _copied(found: Sequence[Duplicate], excerpts: Excerpts, limits: Limits) -> Copied:
    shown = [
        excerpts.read(each.path_bytes, each.line, min(each.end_line - 1, each.line + limits.copied_lines - 1))
        for each in found[:SIDES]
    ]
    return Copied(
        lines=found[0].lines,
        copies=len(found),
        places=[(cut_path(display_path(each.path_bytes), limits.text), each.line) for each in found[: limits.places]],
        shown=shown,
    )


def show_rules(rules: Mapping[str, RuleSums], excerpts: Excerpts, limits: Limits) -> list[Rule]:
    """What was found by each rule: the gravest first, of these what was found most often. Raises StoreCorrupt."""
    ordered = sorted(rules, key=lambda code: (_severity(rules[code].first), -rules[code].count, code))
    return [_rule(code, rules[code], excerpts, limits) for code in ordered[: limits.rules]]


def _severity(record: JsonRecord) -> int:
    severity = record.get("severity")
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def _rule(code: str, sums: RuleSums, excerpts: Excerpts, limits: Limits) -> Rule:
    first = sums.first
    line, column, end_line, end_column = (
        value if isinstance(value := first.get(name), int) else 1
        for name in ("line", "column", "end_line", "end_column")
    )
    is_of_one_line = end_line == line and end_column > column
    return Rule(
        code=cut(code, limits.text),
        tool=cut(str(first.get("tool", "")), limits.text),
        severity=str(first.get("severity", "")),
        count=sums.count,
        files=len(sums.paths),
        message=cut(str(first.get("message", "")), limits.text),
        column=column,
        width=end_column - column if is_of_one_line else 0,
        example=excerpts.read(path_bytes(first), line, line),
    )
