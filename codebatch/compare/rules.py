"""Rules that are turned off, and comments that may suppress findings."""

from __future__ import annotations

import re

from codebatch.model.plan import PlannedTask
from codebatch.plugins.worker_services import RuleSwitch, absence_services

# The marker of suppression comments of codebatch, and words that occur in those of ruff and other linters.
_SUPPRESSION_MARKER = b"codebatch: ignore"
_SUPPRESSION_WORDS = (b"ruff", b"pylint", b"nosec", b"lgtm", b"noinspection")
_ANY_SUPPRESSION_WORD = re.compile(rb"\b(?:%b)\b" % b"|".join(_SUPPRESSION_WORDS))
# The built-in task `lint`. Only its configuration can turn off rules, and only its unreported findings can be
# explained.
LINT_TASK = "lint"


def make_rule_switch(task: PlannedTask) -> RuleSwitch | None:
    """Return a function that returns whether a task's configuration turns off a rule.

    The function takes path, tool and rule ID, and returns None for an unknown rule. If no rules are off, or if the
    configuration is no longer valid, return None instead of a function.
    """
    if task.name != LINT_TASK:
        return None
    return absence_services().rule_switch(task.config)


def has_suppression_comments(content: bytes) -> bool:
    """Return whether a file contains text that may be a suppression comment of codebatch."""
    return _SUPPRESSION_MARKER in content


def has_foreign_suppressions(content: bytes) -> bool:
    """Return whether a file contains text that may be a suppression comment for ruff or another linter."""
    if b"noqa" in content.lower():
        return True
    return any(word in content for word in _SUPPRESSION_WORDS) and _ANY_SUPPRESSION_WORD.search(content) is not None
