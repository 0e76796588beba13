"""The states of what two batches are compared for, and the rules that give a finding its state (SPEC.md "Comparison").

A finding or a group of copies is new or fixed. The severity of a finding is raised or lowered. A metric, or the number
of copies in a group, is worsened or improved. A symbol, an edge, a file or a metric is added or removed, which is
neither good nor bad. A finding is removed, not fixed, if its file is gone.
"""

from __future__ import annotations

import re
from typing import Literal

from codebatch.compare.matching.findings import Pass
from codebatch.model.record import Diagnostic, Severity

State = Literal[
    "unchanged",
    "moved",
    "changed",
    "severity_raised",
    "severity_lowered",
    "worsened",
    "improved",
    "new",
    "fixed",
    "added",
    "removed",
    "suppressed",
    "not_comparable",
]

# Why what is in one batch need not be in the other: there the path is not looked at, or left out; the task is not run,
# or has failed or not come to the file; the rule is off, a note in the source silences it, few rules look in such a
# file; the file cannot be read as what it is, or the finding is one too many, or doubtful in such a file; it is another
# version that looks, or one that is configured otherwise. Or the file may have moved, for contents are lost.
Reason = Literal[
    "path",
    "excluded",
    "lost",
    "task",
    "failed",
    "rule_off",
    "suppressed",
    "skipped",
    "partially_parsed",
    "withheld",
    "tool",
    "configuration",
]

REGRESSIONS: tuple[State, ...] = ("new", "severity_raised", "worsened")
"""States that call for attention, in the order in which people read them."""
IMPROVEMENTS: tuple[State, ...] = ("fixed", "severity_lowered", "improved")
"""The opposite states."""

# What a message calls a line goes with the lines above it.
_LINE = re.compile(r"\bline \d+")

SEVERITY_RANK: dict[Severity, int] = {"hint": 0, "info": 1, "warning": 2, "error": 3}


def state_of_pair(old: Diagnostic, new: Diagnostic, by: Pass) -> State:
    """The state of two findings that are one. What is told is the weightiest: severity, then message, then place."""
    if old.severity != new.severity:
        return "severity_raised" if SEVERITY_RANK[new.severity] > SEVERITY_RANK[old.severity] else "severity_lowered"
    if old.message != new.message and _LINE.sub("", old.message) != _LINE.sub("", new.message):
        return "changed"
    is_at_one_path = old.path == new.path and old.path_b64 == new.path_b64
    return "unchanged" if by == "line" and is_at_one_path else "moved"


def state_of_new(reason: Reason | None) -> State:
    """The state of a finding that the older batch has not."""
    return "new" if reason is None else "not_comparable"


def state_of_old(reason: Reason | None, *, is_file_gone: bool) -> State:
    """The state of a finding that the newer batch has not. What is silenced is mended by nobody."""
    if reason in ("rule_off", "suppressed"):
        return "suppressed"
    if reason is not None:
        return "not_comparable"
    return "removed" if is_file_gone else "fixed"
