"""Findings grouped by rule, most severe first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from codebatch.model.record import SEVERITIES, Diagnostic, Severity
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.operations.queries.records import search_records
from codebatch.query.answers.counting import count_records
from codebatch.query.answers.omissions import omission_notes
from codebatch.query.fields import JsonRecord, as_typed_record, path_key
from codebatch.query.filters.filters import RecordFilter, path_bytes
from codebatch.query.secondary_files import SecondaryFiles
from codebatch.query.sources.records import restrict_to_task

SEVERITIES_SHOWN: tuple[Severity, ...] = tuple(severity for severity in SEVERITIES if severity != "hint")
"""Severities that are shown by default. Hints must be requested."""


FINDINGS_PER_FILE_FEW = 3
"""If a file has more findings of a rule than this number, they probably have one cause."""


class RuleFindings(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of a rule with one severity: their number, and the number of files that contain them.

    `findings` lists findings in this order:

    1. findings in production code
    2. findings in files with more than three findings of the rule, which probably have a common cause
    3. findings in `non_production` files: tests, examples, fixtures, templates, and vendored or generated code

    Within these groups, findings are sorted by path and location.
    """

    code: str
    tool: str
    severity: Severity
    count: int
    files: int
    non_production: int
    findings: tuple[JsonRecord, ...]


class FindingsByRule(msgspec.Struct, frozen=True, kw_only=True):
    """Findings by rule, and the number of hints that are hidden because no severity was requested.

    Rules are sorted by severity; then rules with findings in production code come first; then by ascending number of
    findings, because a pattern that occurs everywhere is probably intended.
    """

    rules: tuple[RuleFindings, ...]
    hints_hidden: int

    @property
    def count(self) -> int:
        """The number of all findings."""
        return sum(rule.count for rule in self.rules)


def find_findings(question: BatchQuery, record_filter: RecordFilter, task: str | None = None) -> Answer[FindingsByRule]:
    """Return the diagnostics that pass a filter, by rule. If the filter has no severities, hints are left out.

    Raises InvalidInput or StoreCorrupt.
    """
    shown = record_filter if record_filter.severities else replace(record_filter, severities=SEVERITIES_SHOWN)
    answer = search_records(question, shown, task=task)
    diagnostics = list(answer.result)
    hints = 0
    if not record_filter.severities:
        names = question.records.choose_tasks(task)
        hidden = replace(record_filter, severities=("hint",))
        hints = count_records(restrict_to_task(question.records, task), names, hidden, "severity").total
    rules = tuple(group_by_rule(diagnostics, question.non_production_files)) if diagnostics else ()
    return Answer(
        question=question,
        result=FindingsByRule(rules=rules, hints_hidden=hints),
        completeness=answer.completeness,
        notes=omission_notes(question.records, question.records.choose_tasks(task)),
    )


def group_by_rule(diagnostics: Iterable[JsonRecord], secondary: SecondaryFiles) -> list[RuleFindings]:
    """Group diagnostics by rule and severity. Return the groups in the order of FindingsByRule."""
    by_rule: dict[tuple[Severity, str, str], list[JsonRecord]] = {}
    for record in diagnostics:
        diagnostic = as_typed_record(record, Diagnostic)
        by_rule.setdefault((diagnostic.severity, diagnostic.code, diagnostic.tool), []).append(record)
    rules = [
        RuleFindings(
            code=code,
            tool=tool,
            severity=severity,
            count=len(records),
            files=len({path_key(record) for record in records}),
            non_production=sum(secondary.category_of(path_bytes(record)) is not None for record in records),
            findings=tuple(_sort_production_first(records, secondary)),
        )
        for (severity, code, tool), records in by_rule.items()
    ]
    return sorted(rules, key=_sort_key)


def _sort_production_first(diagnostics: Sequence[JsonRecord], secondary: SecondaryFiles) -> list[JsonRecord]:
    """Sort the findings of a rule by the kind of their file.

    Files with at most FEW findings come first, then files with more findings, and non-production files last. The sort
    is stable.
    """
    in_file = Counter(path_bytes(record) for record in diagnostics)
    return sorted(
        diagnostics,
        key=lambda diagnostic: (
            secondary.category_of(path_bytes(diagnostic)) is not None,
            in_file[path_bytes(diagnostic)] > FINDINGS_PER_FILE_FEW,
        ),
    )


def _sort_key(rule: RuleFindings) -> tuple[int, bool, int, str]:
    """Return the sort key of a rule, for the order of FindingsByRule."""
    return _SEVERITY_RANKS[rule.severity], rule.non_production == rule.count, rule.count, rule.code


_SEVERITY_RANKS = {severity: rank for rank, severity in enumerate(SEVERITIES)}
