"""The states of changes, and the rules that assign them to findings (SPEC.md "Comparison").

- A finding or a duplicate group is new or fixed. If its file was removed, a finding is removed, not fixed.
- The severity of a finding is raised or lowered.
- A metric, or the number of copies in a group, is worsened or improved.
- A symbol, an edge, a file or a metric is added or removed, which is neither good nor bad.
"""

from __future__ import annotations

import re
from typing import Literal

from codebatch.compare.matching.findings import MatchingPass
from codebatch.model.record import Diagnostic, Severity

ChangeState = Literal[
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

# The reason why one batch may lack a record of the other although no change of the source removed it.
# not_checked: the batch does not cover the file, has no result of the task for it, or checks less of it
# configuration: another version of the tool or another configuration was used, or the rule is off
# suppressed: a comment suppresses the finding
# unknown: lint did not report the finding, because of a limit or because it is doubtful in such a file; or the file may
# have moved, but contents are lost
AbsenceReason = Literal["not_checked", "configuration", "suppressed", "unknown"]

REGRESSION_STATES: tuple[ChangeState, ...] = ("new", "severity_raised", "worsened")
"""States of changes for the worse, in display order."""
IMPROVEMENT_STATES: tuple[ChangeState, ...] = ("fixed", "severity_lowered", "improved")
"""States of changes for the better, in display order."""

# Line numbers in messages are not compared, because edits above a line change its number.
_LINE_NUMBER = re.compile(r"\bline \d+")

SEVERITY_RANK: dict[Severity, int] = {"hint": 0, "info": 1, "warning": 2, "error": 3}


def matched_state(old: Diagnostic, new: Diagnostic, by: MatchingPass) -> ChangeState:
    """Return the state of two matching findings.

    If the severities differ, they determine the state. Otherwise it depends on whether the message differs, then the
    location.
    """
    if old.severity != new.severity:
        return "severity_raised" if SEVERITY_RANK[new.severity] > SEVERITY_RANK[old.severity] else "severity_lowered"
    if old.message != new.message and _LINE_NUMBER.sub("", old.message) != _LINE_NUMBER.sub("", new.message):
        return "changed"
    is_at_one_path = old.path == new.path and old.path_b64 == new.path_b64
    return "unchanged" if by == "line" and is_at_one_path else "moved"


def new_finding_state(reason: AbsenceReason | None) -> ChangeState:
    """Return the state of a finding without a match in the older batch.

    `reason` is why the older batch may lack it although it existed, or None.
    """
    return "new" if reason is None else "not_comparable"


def old_finding_state(reason: AbsenceReason | None, *, is_suppressed: bool, is_file_gone: bool) -> ChangeState:
    """Return the state of a finding without a match in the newer batch.

    `reason` is why the newer batch may lack it although it exists, or None. A suppressed finding does not count as
    fixed.
    """
    if reason is not None:
        return "suppressed" if is_suppressed else "not_comparable"
    return "removed" if is_file_gone else "fixed"
