"""Questions about findings that worker code answers: whether a rule is off, and why a finding is not reported."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from codebatch.errors import CodebatchError
from codebatch.model.plan import PlannedTask
from codebatch.plugins.worker_services import (
    FindingsOfFile,
    RuleSwitch,
    UnreportedReason,
    absence_services,
    language_services,
)

# The marker of codebatch suppression comments, and words in comments of ruff and other linters.
_SUPPRESSION_MARKER = b"codebatch: ignore"
_WORDS = (b"ruff", b"pylint", b"nosec", b"lgtm", b"noinspection")
_ANY_WORD = re.compile(rb"\b(?:%b)\b" % b"|".join(_WORDS))
# The task whose rules can be turned off, and whose unreported findings can be explained.
LINT = "lint"


def switch_of(task: PlannedTask) -> RuleSwitch | None:
    """Return a function that tests whether a task's configuration turns off a rule, given path, tool and code.

    The function returns None for an unknown rule. Return None if no rules are off, or if the configuration is no longer
    valid.
    """
    if task.name != LINT:
        return None
    return absence_services().rule_switch(task.config)


class PerFileLimits(NamedTuple):
    """The limits of lint for a file.

    Rules in `once_a_name` report once per name; rules in `once_a_file` report once.

    All other rules report at most `findings_max` findings.
    """

    once_a_name: frozenset[str]
    once_a_file: frozenset[str]
    findings_max: int


@cache
def per_file_limits() -> PerFileLimits:
    """Return the limits of lint for a file."""
    return PerFileLimits(*absence_services().told_of_a_file())


def has_notes(content: bytes) -> bool:
    """Return whether a file may contain a codebatch suppression comment."""
    return _SUPPRESSION_MARKER in content


def has_notes_of_others(content: bytes) -> bool:
    """Return whether a file may contain a suppression comment for ruff or another linter."""
    if b"noqa" in content.lower():
        return True
    return any(word in content for word in _WORDS) and _ANY_WORD.search(content) is not None


def are_silenced(
    path: bytes, content: bytes, contexts: Mapping[str, bytes], findings: Sequence[tuple[int, str]]
) -> list[bool]:
    """Return for each finding, given as (line, code), whether a codebatch suppression comment suppresses it.

    If the file cannot be parsed any more, none is suppressed.
    """
    try:
        return absence_services().are_silenced(path, content, contexts, findings)
    except CodebatchError:
        return [False] * len(findings)


def why_untold(task: PlannedTask, asked: Sequence[FindingsOfFile]) -> Sequence[Sequence[UnreportedReason]]:
    """Return why lint, with a task's configuration, does not report findings of files.

    All reasons are empty if the configuration is no longer valid.
    """
    reasons = language_services().why_untold(task.config, asked)
    return reasons or [[""] * len(findings) for *_, findings, _ in asked]
