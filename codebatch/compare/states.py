"""What became of a finding: the states, and what makes them (SPEC.md "Comparison")."""

from __future__ import annotations

from typing import Literal

from codebatch.compare.findings import Pass
from codebatch.model.record import Diagnostic, Severity

State = Literal[
    "unchanged",
    "moved",
    "changed",
    "worsened",
    "improved",
    "new",
    "fixed",
    "removed",
    "suppressed",
    "not_comparable",
]

REGRESSIONS: frozenset[State] = frozenset({"new", "worsened"})
IMPROVEMENTS: frozenset[State] = frozenset({"fixed", "improved"})

_RANK: dict[Severity, int] = {"hint": 0, "info": 1, "warning": 2, "error": 3}


def state_of_pair(old: Diagnostic, new: Diagnostic, by: Pass) -> State:
    """The state of two findings that are one. What is told is the weightiest: severity, then message, then place."""
    if old.severity != new.severity:
        return "worsened" if _RANK[new.severity] > _RANK[old.severity] else "improved"
    if old.message != new.message:
        return "changed"
    return "unchanged" if by == "line" and old.path_bytes == new.path_bytes else "moved"
