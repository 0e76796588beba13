"""What was found wrong, rule by rule, the most certain first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from codebatch.model.record import SEVERITIES, Diagnostic, Severity
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.operations.queries.records import count_by, search
from codebatch.query.fields import JsonRecord, path_key, typed
from codebatch.query.filters.filters import RecordFilter, path_bytes
from codebatch.query.secondary_files import SecondaryFiles

SHOWN: tuple[Severity, ...] = tuple(severity for severity in SEVERITIES if severity != "hint")
"""Hints are for those who ask for them."""


FEW = 3
"""More findings of a rule in one file are likely of one cause."""


class RuleFindings(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of a rule with one severity: their number, and the number of files with them.

    `findings` lists findings in production code first. Findings in `non_production` files come last: tests, examples,
    fixtures, templates, and vendored or generated code. Before these come files with more than three findings of the
    rule, which probably have a common cause. Otherwise the order is by path and location.
    """

    code: str
    tool: str
    severity: Severity
    count: int
    files: int
    non_production: int
    findings: tuple[JsonRecord, ...]


class FindingsByRule(msgspec.Struct, frozen=True, kw_only=True):
    """Findings by rule, and how many hints there are besides that were not asked for.

    The gravest come first; of one severity those outside of tests and the like; of these the rules that found least,
    for what is done all over a tree is its way.
    """

    rules: tuple[RuleFindings, ...]
    hints_hidden: int

    @property
    def count(self) -> int:
        """How many findings there are in all."""
        return sum(rule.count for rule in self.rules)


def find(question: BatchQuery, asked: RecordFilter, task: str | None = None) -> Answer[FindingsByRule]:
    """The diagnostics that a filter lets pass, by rule; without hints where it names no severity.

    Raises InvalidInput or StoreCorrupt.
    """
    hints = 0
    if not asked.severities:
        hidden = msgspec.structs.replace(asked, severities=("hint",))
        hints = count_by(question, hidden, "severity", task=task).found.total
        asked = msgspec.structs.replace(asked, severities=SHOWN)
    answer = search(question, asked, task=task)
    found = list(answer.found)
    rules = tuple(by_rule(found, question.apart)) if found else ()
    return Answer(question=question, found=FindingsByRule(rules=rules, hints_hidden=hints), whole=answer.whole)


def by_rule(found: Iterable[JsonRecord], apart: SecondaryFiles) -> list[RuleFindings]:
    """Diagnostics by rule and severity, as Findings has them; those of files that stand apart come last."""
    by_rule: dict[tuple[Severity, str, str], list[JsonRecord]] = {}
    for record in found:
        about = typed(record, Diagnostic)
        by_rule.setdefault((about.severity, about.code, about.tool), []).append(record)
    rules = [
        RuleFindings(
            code=code,
            tool=tool,
            severity=severity,
            count=len(each),
            files=len({path_key(record) for record in each}),
            non_production=sum(apart.of(path_bytes(record)) is not None for record in each),
            findings=tuple(_in_order(each, apart)),
        )
        for (severity, code, tool), each in by_rule.items()
    ]
    return sorted(rules, key=_weight)


def _in_order(found: Sequence[JsonRecord], apart: SecondaryFiles) -> list[JsonRecord]:
    """What a rule found: files that stand apart last, of the others those first of which there is least to say."""
    in_file = Counter(path_bytes(record) for record in found)
    return sorted(found, key=lambda each: (apart.of(path_bytes(each)) is not None, in_file[path_bytes(each)] > FEW))


def _weight(rule: RuleFindings) -> tuple[int, bool, int, str]:
    """By what rules are ordered."""
    return _RANKS[rule.severity], rule.non_production == rule.count, rule.count, rule.code


_RANKS = {severity: rank for rank, severity in enumerate(SEVERITIES)}
