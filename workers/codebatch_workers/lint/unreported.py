"""Reasons why lint does not report a finding, although a rule may find it. Comparisons of two batches need the reasons.

All rules run again, without suppression comments, limits and filters for doubtful findings. If this run does not find a
finding, the finding does not exist. If ruff cannot parse a file, nothing is known about its findings in the file.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

from codebatch.model.record import Diagnostic
from codebatch_workers.lint.python.false_positives import (
    has_suppression_comment,
    is_doubtful_by_file,
    is_doubtful_finding,
)
from codebatch_workers.lint.python.ruff import SYNTAX_ERROR_CODE, RuffRunner, is_for_ruff
from codebatch_workers.lint.python.ruff_project import ProjectRuffRunner
from codebatch_workers.lint.rule import TextRule
from codebatch_workers.lint.settings import LintSettings
from codebatch_workers.syntax.source import SourceFile

_NUMBER_IN_MESSAGE = re.compile(r"\d+")

# Rules whose findings lint can leave out because of code elsewhere in the file, or because the file has too many of
# them. For other rules, only the lines of a finding decide whether it is left out.
_CODES_OF_WHOLE_FILE = frozenset({"B015", "B018", "F401", "F405", "F821"})

UnreportedCause = Literal["suppressed", "unknown", ""]
"""The reason why lint does not report a finding.

- `suppressed`: a comment suppresses the finding
- `unknown`: a limit was reached, the rule is mostly wrong in the file, or ruff cannot parse the file
- empty: the finding does not exist, or the code around it makes it doubtful
"""


class UnreportedFinding(NamedTuple):
    """A finding that a batch lacks: its line, from 1, its tool, its rule and its message.

    When two findings are compared, numbers in their messages are ignored.
    """

    line: int
    tool: str
    code: str
    message: str

    def is_at(self, line: int, message: str) -> bool:
        """Return whether another finding of the same rule equals this one: it has the same line and message."""
        return self.line == line and _NUMBER_IN_MESSAGE.sub("#", message) == _NUMBER_IN_MESSAGE.sub("#", self.message)


class UnreportedQuery(NamedTuple):
    """Findings that a batch lacks, all in one file, and this file.

    `has_suppression_comment` is true if the file may have suppression comments or a syntax error.
    """

    file: SourceFile
    expected: Sequence[UnreportedFinding]
    is_marked: bool

    def needs_ruff(self, doubted: frozenset[str]) -> bool:
        """Return whether ruff must run on the file to determine the reasons.

        Ruff must run if the file lacks a finding of ruff that a comment, a syntax error or a filter may have removed.
        `doubted` are the rules with such filters.
        """
        if not is_for_ruff(self.file):
            return False
        return any(finding.tool == "ruff" and (self.is_marked or finding.code in doubted) for finding in self.expected)


def unreported_reason(
    config: LintSettings, rules: Mapping[str, TextRule], queries: Sequence[UnreportedQuery]
) -> Iterator[list[UnreportedCause]]:
    """Yield for each query a list of reasons, one for each finding of the query. Raises RuffError or OSError."""
    is_project = config.ruff.config == "project"
    for_ruff = [query for query in queries if query.needs_ruff(frozenset() if is_project else _CODES_OF_WHOLE_FILE)]
    codes = {finding.code for query in for_ruff for finding in query.expected if finding.tool == "ruff"}
    with TemporaryDirectory() as scratch:
        without_suppression, after_suppression = _RuffFindings(), _RuffFindings()
        for answers, respects_noqa in ((without_suppression, False), (after_suppression, True)):
            files = [query.file for query in for_ruff if not respects_noqa or without_suppression.has_any(query)]
            if files:
                ruff = (
                    ProjectRuffRunner(Path(scratch), respects_noqa=respects_noqa)
                    if is_project
                    else RuffRunner(codes, Path(scratch), respects_noqa=respects_noqa)
                )
                answers.update(zip(files, ruff.check(files), strict=True))
    for query in queries:
        text_rules = _TextRuleFindings(query.file, rules)
        yield [
            _ruff_unreported_cause(query.file, finding, without_suppression, after_suppression, is_project=is_project)
            if finding.tool == "ruff"
            else text_rules.unreported_reason(finding)
            for finding in query.expected
        ]


class _RuffFindings(dict[SourceFile, list[Diagnostic]]):
    """The findings of ruff, by file."""

    def matching(self, file: SourceFile, expected: UnreportedFinding) -> list[Diagnostic]:
        all_findings = self.get(file, ())
        return [
            finding
            for finding in all_findings
            if finding.code == expected.code and expected.is_at(finding.line, finding.message)
        ]

    def has_any(self, query: UnreportedQuery) -> bool:
        return any(self.matching(query.file, finding) for finding in query.expected)


def _ruff_unreported_cause(
    file: SourceFile,
    expected: UnreportedFinding,
    without_suppression: _RuffFindings,
    after_suppression: _RuffFindings,
    *,
    is_project: bool,
) -> UnreportedCause:
    findings = without_suppression.matching(file, expected)
    is_broken = any(finding.code == SYNTAX_ERROR_CODE for finding in without_suppression.get(file, ()))
    if is_broken and not (is_project and findings):
        return "unknown"
    if not findings:
        return ""
    if not after_suppression.matching(file, expected):
        return "suppressed"
    if is_project:
        return "unknown"
    if all(has_suppression_comment(file, finding) for finding in findings):
        return "suppressed"
    is_only_doubtful = all(
        is_doubtful_finding(file, finding) and not is_doubtful_by_file(file, finding) for finding in findings
    )
    return "" if is_only_doubtful else "unknown"


class _TextRuleFindings:
    """The findings in one file of rules other than ruff's. Each rule runs once, when its findings are first needed."""

    def __init__(self, file: SourceFile, rules: Mapping[str, TextRule]) -> None:
        self._file = file
        self._rules = rules
        self._messages_by_line: dict[str, dict[int, list[str]]] = {}

    def unreported_reason(self, finding: UnreportedFinding) -> UnreportedCause:
        if finding.code not in self._messages_by_line:
            self._messages_by_line[finding.code] = self._find_messages(self._rules.get(finding.code))
        messages = self._messages_by_line[finding.code].get(finding.line, ())
        return "unknown" if any(finding.is_at(finding.line, message) for message in messages) else ""

    def _find_messages(self, rule: TextRule | None) -> dict[int, list[str]]:
        """Return the messages of a rule's findings in the file, by line. Without a rule, return an empty mapping."""
        messages: dict[int, list[str]] = defaultdict(list)
        file = self._file
        if rule is not None and file.file_class not in ("binary", "huge", "empty") and rule.needle in file.utf8:
            for start, _, message in rule.find(file):
                messages[file.line(start)].append(message)
        return messages
