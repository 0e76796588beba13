"""The gates of a proposed change that need only its file, in the worker: `parse`, `repeat` and `findings`.

SPEC.md "Changes" defines them. Most changes pass, so the old file is examined only if the new one has an error or a
finding.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from codebatch.model.change import ChangeRefusal
from codebatch.model.record import Diagnostic
from codebatch.model.text.quantities import count_text
from codebatch_workers.lint.bounds import FINDINGS_PER_FILE_MAX
from codebatch_workers.lint.severities import severity_in
from codebatch_workers.lint.text_rules import TEXT_RULES
from codebatch_workers.runtime.results import TaskFailure
from codebatch_workers.runtime.task_calls import call_guarded
from codebatch_workers.syntax.edited_files import EditedFile
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.syntax.suppression import exclude_suppressed
from codebatch_workers.syntax.unseen_errors import error_spans
from codebatch_workers.tasks.lint import apply_rule

EVIDENCE_CHARACTERS_MAX = 300
SERIOUS = ("error", "warning")
"""The severities that the gate `findings` compares."""
_RULES = tuple(rule for rule in TEXT_RULES if rule.is_on and rule.severity in SERIOUS)
_ADDRESS = re.compile(r"\b0x[0-9a-f]{4,}\b")

TaskApplication = Callable[[SourceFile], Iterable[object]]
"""A call of the task on a file. It returns the values that the task yields."""


SyntaxErrorFinder = Callable[[SourceFile], Sequence[Diagnostic]]
"""A function that returns the syntax errors that the task `parse` reports in a file."""


def find_refusal(
    file: SourceFile, edited: EditedFile, apply_task: TaskApplication, find_errors: SyntaxErrorFinder
) -> ChangeRefusal | None:
    """Return the first gate that refuses a change of a file, or None if the change passes. A deletion passes."""
    if edited.content is None:
        return None
    changed = SourceFile(file.path, edited.content, edited.executable, file.contexts)
    return judge_contents(file, changed, apply_task, find_errors)


def judge_contents(
    file: SourceFile, changed: SourceFile, apply_task: TaskApplication, find_errors: SyntaxErrorFinder
) -> ChangeRefusal | None:
    """Return the first gate that refuses the new content of a file, or None if the new content passes."""
    if evidence := _new_syntax_errors(file, changed, find_errors):
        return ChangeRefusal(gate="parse", evidence=evidence)
    if evidence := _second_change(changed, apply_task):
        return ChangeRefusal(gate="repeat", evidence=evidence)
    if evidence := _new_finding(file, changed):
        return ChangeRefusal(gate="findings", evidence=evidence)
    return None


def _new_syntax_errors(file: SourceFile, changed: SourceFile, find_errors: SyntaxErrorFinder) -> str:
    """Return the evidence if a file gets more syntax errors. If a parser is exact, only its errors count."""
    lines = [(error.line, error.end_line) for error in find_errors(changed)]
    before = len(find_errors(file)) if lines else 0
    if len(lines) <= before and not changed.syntax.has_exact_parser:
        lines = [(changed.line(start), changed.line(end)) for start, end in error_spans(changed)]
        before = len(error_spans(file)) if lines else 0
    if len(lines) <= before:
        return ""
    # An error may begin long before the change that causes it.
    edited = changed.line(_common_length(file.utf8, changed.utf8))
    first = min(max(start, edited) if edited <= end else start for start, end in lines)
    errors = count_text(len(lines), "syntax error")
    old = f"; the old one has {before:,}" if file.content else ""
    return f"the new content has {errors}, the first in line {first}{old}"


def _common_length(one: bytes, other: bytes) -> int:
    """Return the length of the longest common beginning."""
    shorter = min(len(one), len(other))
    return bisect_left(range(shorter), True, key=lambda length: one[: length + 1] != other[: length + 1])


def _second_change(changed: SourceFile, apply_task: TaskApplication) -> str:
    values = call_guarded(lambda: list(apply_task(changed)))  # A generator runs only when its values are taken.
    if isinstance(values, TaskFailure):
        last = _ADDRESS.sub("0x…", values.evidence.strip().rpartition("\n")[2])
        return f"the task fails for the new content: {last or values.reason}"[:EVIDENCE_CHARACTERS_MAX]
    for value in values:
        if isinstance(value, EditedFile) and value.is_change:
            if value.content is None:
                return "the task deletes the file if it is applied to the new content"
            lines = f"{count_text(value.added, 'line')} added, {value.removed:,} removed"
            return f"the task changes the new content again: {lines}"
    return ""


def _new_finding(file: SourceFile, changed: SourceFile) -> str:
    findings = list(_serious_findings(changed))
    if not findings:
        return ""
    known = Counter((finding.code, finding.message) for finding in _serious_findings(file))
    for finding in findings:
        key = finding.code, finding.message
        if not known[key]:
            text = f"new finding in line {finding.line}: {finding.severity} {finding.code} {finding.message}"
            return text[:EVIDENCE_CHARACTERS_MAX]
        known[key] -= 1
    return ""


def _serious_findings(file: SourceFile) -> Iterator[Diagnostic]:
    """Yield the warnings and errors of codebatch's own rules in a file, except for suppressed ones."""
    file_class = file.file_class
    if file_class in ("binary", "huge", "empty"):
        return
    for rule in _RULES:
        if severity_in(file_class, rule.code, rule.severity) in SERIOUS:
            findings = apply_rule(rule, file)
            if 0 < len(findings) < FINDINGS_PER_FILE_MAX:
                yield from exclude_suppressed(file, findings)
