"""Tests of conditions: what each measures in a comparison, and its verdict."""

from __future__ import annotations

import pytest

from codebatch.compare.conditions import CONDITION_FORMS, evaluate_conditions, parse_condition
from codebatch.compare.differences import Change
from codebatch.compare.states import ChangeState
from codebatch.model.record import Diagnostic, Metric, Severity


def _diagnostic(severity: Severity) -> Diagnostic:
    return Diagnostic(
        path="a.py", line=1, column=1, end_line=1, end_column=2, severity=severity, code="C", message="m", tool="t"
    )


def _finding(state: ChangeState, old: Severity | None, new: Severity | None) -> Change:
    return Change(state, old and _diagnostic(old), new and _diagnostic(new))


def _metric(
    old: int | None, new: int | None, name: str = "complexity", state: ChangeState = "changed", symbol: str = "f"
) -> Change:
    before, after = (
        None if value is None else Metric(path="a.py", metric=name, value=value, symbol=symbol) for value in (old, new)
    )
    return Change(state, before, after)


_NEW_ERROR = _finding("new", None, "error")
_NEW_WARNING = _finding("new", None, "warning")
_NEW_HINT = _finding("new", None, "hint")
_TO_ERROR = _finding("severity_raised", "warning", "error")
_TO_WARNING = _finding("severity_raised", "hint", "warning")
_BETTER = _finding("severity_lowered", "error", "warning")
_GONE = _finding("fixed", "error", None)
_UNKNOWN = _finding("not_comparable", None, "error")
_MOVED = _finding("moved", "error", "error")
_FINDINGS = [
    _NEW_ERROR, _NEW_WARNING, _NEW_HINT, _TO_ERROR, _TO_WARNING, _BETTER, _GONE, _UNKNOWN, _MOVED,
    _metric(1, 99, state="worsened"),
]  # fmt: skip
_MOST_SEVERE_FIRST = [_NEW_ERROR, _TO_ERROR, _NEW_WARNING, _TO_WARNING, _NEW_HINT]


def test_change_that_violates_one_of_several_conditions_is_forbidden() -> None:
    conditions = [parse_condition(text) for text in ("new-error", "severity-raised", "metric:complexity>15")]
    for ordered in (conditions, conditions[::-1]):
        judged, violating, allowed = evaluate_conditions(ordered, [_NEW_ERROR, _TO_WARNING, _NEW_HINT])
        assert (violating, allowed) == ([_NEW_ERROR, _TO_WARNING], [_NEW_HINT])
        assert {result.condition: result.violations for result in judged} == {
            "new-error": 1, "severity-raised": 1, "metric:complexity>15": 0,
        }  # fmt: skip


_FINDING_CONDITIONS = [
    ("new-error", [_NEW_ERROR, _TO_ERROR]),
    ("new-warning", [_NEW_ERROR, _NEW_WARNING, _TO_WARNING]),
    ("new", [_NEW_ERROR, _NEW_WARNING, _NEW_HINT]),
    ("severity-raised", [_TO_ERROR, _TO_WARNING]),
]


@pytest.mark.parametrize(("text", "forbidden"), _FINDING_CONDITIONS)
def test_finding_condition_forbids_matching_findings(text: str, forbidden: list[Change]) -> None:
    (judged,), violating, allowed = evaluate_conditions([parse_condition(text)], _FINDINGS)
    assert violating == forbidden
    assert allowed == [change for change in _MOST_SEVERE_FIRST if change not in forbidden]
    assert (judged.value, judged.limit, judged.violations, judged.verdict) == (
        len(forbidden),
        0,
        len(forbidden),
        "failed",
    )


_METRIC_CONDITIONS = [
    ("metric:complexity>10", [_metric(None, 11)], 11, 1),
    ("metric:complexity>10", [_metric(None, 10)], 10, 0),
    ("metric:complexity>10", [_metric(9, 11), _metric(11, 12)], 12, 2),
    ("metric:complexity>10", [_metric(12, 11)], None, 0),
    ("metric:complexity>10", [_metric(11, 11), _metric(12, None)], None, 0),
    ("metric:complexity>10", [_metric(1, 99, "lines")], None, 0),
    ("metric:complexity>10", [_metric(1, 99, symbol="")], None, 0),
    ("metric:code>10", [_metric(1, 99, "code", symbol="")], 99, 1),
    ("metric:complexity>10", [_metric(None, 99, state="not_comparable")], None, 0),
    ("metric:complexity+3", [_metric(9, 12)], 3, 0),
    ("metric:complexity+3", [_metric(9, 13), _metric(1, 2)], 4, 1),
    ("metric:complexity+3", [_metric(None, 99), _metric(9, 1)], None, 0),
    ("metric:cycle+0", [_metric(None, 2, "cycle", symbol=""), _metric(2, 2, "cycle", symbol="")], 2, 1),
    ("cycle", [_metric(None, 2, "cycle", symbol=""), _metric(2, 5, "cycle", symbol="")], 2, 2),
    ("cycle", [_metric(3, 2, "cycle", symbol=""), _metric(1, 9, "dependents", symbol="")], 0, 0),
    ("duplicate", [_metric(12, 40, "duplicated_lines", symbol=""), _metric(0, 1, "cycle", symbol="")], 1, 1),
]


@pytest.mark.parametrize(("text", "differences", "value", "violations"), _METRIC_CONDITIONS)
def test_metric_condition_forbids_exceeding_metrics(
    text: str, differences: list[Change], value: int | None, violations: int
) -> None:
    (judged,), forbidden, _ = evaluate_conditions([parse_condition(text)], differences)
    assert (judged.condition, judged.value, judged.violations, len(forbidden)) == (text, value, violations, violations)
    assert judged.verdict == ("failed" if violations else "passed")


def test_each_condition_has_a_verdict_and_each_difference_is_reported_once() -> None:
    judged, forbidden, _ = evaluate_conditions(
        [*map(parse_condition, ("new-error", "new", "metric:lines>5"))], _FINDINGS
    )
    assert [condition.verdict for condition in judged] == ["failed", "failed", "passed"]
    assert forbidden == [_NEW_ERROR, _NEW_WARNING, _NEW_HINT, _TO_ERROR]
    assert evaluate_conditions([], _FINDINGS) == ([], [], _MOST_SEVERE_FIRST)


@pytest.mark.parametrize(
    "text", ["", "new-", "newer", "NEW", "metric:", "metric:>1", "metric:a>", "metric:a>x", "metric:a=1",
             "metric:a>1.5", "metric:a>-1", "metric:a b>1", "metric:a>1\n", "metric:a>" + "9" * 16,
             *CONDITION_FORMS[-2:]],
)  # fmt: skip
def test_invalid_condition_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="is not a condition"):
        parse_condition(text)


@pytest.mark.parametrize(
    "text", ["metric:complexity>", "metric:complexity+ten", "metric:complexity>1.5", "metric:complexity>-1"]
)
def test_metric_condition_without_a_number_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a condition: metric:complexity[>+] must be followed by an integer"):
        parse_condition(text)
