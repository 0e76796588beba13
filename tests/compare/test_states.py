"""Tests of the state of a finding that is in both batches."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from codebatch.compare.matching.findings import MatchingPass
from codebatch.compare.states import ChangeState, matched_state, new_finding_state, old_finding_state
from codebatch.model.record import Diagnostic

_OLD = Diagnostic(
    path="a", line=1, column=1, end_line=1, end_column=2, severity="warning", code="X", message="as in line 7", tool="t"
)


@pytest.mark.parametrize(
    ("new", "by", "state"),
    [
        (_OLD, "line", "unchanged"),
        (replace(_OLD, line=9), "line", "unchanged"),
        (replace(_OLD, message="as in line 8"), "line", "unchanged"),
        (replace(_OLD, message="as in row 7"), "line", "changed"),
        (replace(_OLD, path="b"), "line", "moved"),
        (replace(_OLD, line=9), "text", "moved"),
        (replace(_OLD, severity="error", message="other"), "text", "severity_raised"),
        (replace(_OLD, severity="info", path="b"), "line", "severity_lowered"),
    ],
)
def test_most_significant_state_of_a_pair_is_reported(new: Diagnostic, by: MatchingPass, state: ChangeState) -> None:
    assert matched_state(_OLD, new, by) == state


def test_suppressed_finding_is_not_fixed_even_if_its_file_is_gone() -> None:
    assert old_finding_state("configuration", is_suppressed=True, is_file_gone=False) == "suppressed"
    assert old_finding_state("suppressed", is_suppressed=True, is_file_gone=True) == "suppressed"
    assert old_finding_state("configuration", is_suppressed=False, is_file_gone=False) == "not_comparable"
    assert old_finding_state("not_checked", is_suppressed=False, is_file_gone=True) == "not_comparable"
    assert old_finding_state(None, is_suppressed=False, is_file_gone=True) == "removed"
    assert (new_finding_state("configuration"), new_finding_state(None)) == ("not_comparable", "new")
