"""The conditions of `check` (SPEC.md "Quality gate"). Each names differences that a change must not have.

new-error, new-warning, new   new findings of this severity or a graver one, and findings raised to it
severity-raised               findings whose severity was raised
metric:NAME>N                 a value above N that is new or has risen
metric:NAME+N                 a value that has risen by more than N
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec

from codebatch.compare.differences import Change
from codebatch.compare.metrics import WORSE_OF_FUNCTIONS
from codebatch.compare.states import SEVERITY_RANK
from codebatch.model.record import Diagnostic, Metric, Severity

Verdict = Literal["passed", "failed"]
SEVERITY_RAISED = "severity-raised"
FORMS = ("new-error", "new-warning", "new", SEVERITY_RAISED, "metric:NAME>N", "metric:NAME+N")
DEFAULT = "new-error"

_METRIC = re.compile(r"metric:([^\s>+]{1,200})([>+])(\d{1,15})\Z", re.ASCII)
_OF_A_METRIC = re.compile(r"metric:[^\s>+]{1,200}[>+]")
_SEVERITIES: dict[str, Severity] = {"new-error": "error", "new-warning": "warning", "new": "hint"}


class Condition(msgspec.Struct, frozen=True):
    """What may not be. `measure` gives of a difference what is held against `limit`, None where it is nothing to it.

    What `is_counted` is told by its number, else by the greatest. `metric` is the one that is measured.
    """

    text: str
    kind: Literal["diagnostic", "metric"]
    limit: int
    is_counted: bool
    measure: Callable[[Change], int | None]
    metric: str = ""


class ConditionResult(msgspec.Struct, frozen=True, kw_only=True):
    """A condition of a check, and its result.

    `value` is the number of findings, or the greatest value of a metric that is new or has increased; it is null if
    there is none. `violations` counts the changes that exceed the `limit`.
    """

    condition: str
    value: int | None
    limit: int
    violations: int
    verdict: Verdict


def parse_condition(text: str) -> Condition:
    """A condition as it is written. Raises ValueError where it is none."""
    severity = _SEVERITIES.get(text)
    if severity is not None:
        return Condition(text, "diagnostic", 0, True, _new_as(severity))
    if text == SEVERITY_RAISED:
        return Condition(text, "diagnostic", 0, True, _raised)
    found = _METRIC.match(text)
    if found is None:
        begins = _OF_A_METRIC.match(text)
        why = f": {begins[0]} must be followed by an integer" if begins else ""
        raise ValueError(f"{text!r} is not a condition{why}")
    measure = _risen_to(found[1]) if found[2] == ">" else _risen_by(found[1])
    return Condition(text, "metric", int(found[3]), False, measure, found[1])


class Verdicts(NamedTuple):
    """The verdict on each condition, the differences that some condition forbids, and new findings that none forbids.

    They keep their order, but the most severe of the `allowed` findings come first. One whose severity was raised
    counts as new.
    """

    judged: list[ConditionResult]
    forbidden: list[Change]
    allowed: list[Change]


def judge(conditions: Sequence[Condition], differences: Iterable[Change]) -> Verdicts:
    """Hold differences against conditions."""
    measured: list[list[int]] = [[] for _ in conditions]
    forbidden: list[Change] = []
    allowed: list[Change] = []
    for each in differences:
        is_forbidden = False
        for condition, values in zip(conditions, measured, strict=True):
            value = condition.measure(each)
            if value is not None:
                values.append(value)
                is_forbidden |= value > condition.limit
        if is_forbidden:
            forbidden.append(each)
        elif each.state in ("new", "severity_raised"):
            allowed.append(each)
    allowed.sort(key=_severity, reverse=True)
    return Verdicts([_judged(*each) for each in zip(conditions, measured, strict=True)], forbidden, allowed)


def _severity(each: Change) -> int:
    return SEVERITY_RANK[each.new.severity] if isinstance(each.new, Diagnostic) else -1


def _judged(condition: Condition, values: Sequence[int]) -> ConditionResult:
    beyond = sum(value > condition.limit for value in values)
    value = beyond if condition.is_counted else max(values, default=None)
    return ConditionResult(
        condition=condition.text,
        value=value,
        limit=condition.limit,
        violations=beyond,
        verdict="failed" if beyond else "passed",
    )


def _new_as(severity: Severity) -> Callable[[Change], int | None]:
    def measure(each: Change) -> int | None:
        if each.state not in ("new", "severity_raised") or not isinstance(each.new, Diagnostic):
            return None
        before = SEVERITY_RANK[each.old.severity] if isinstance(each.old, Diagnostic) else -1
        return 1 if before < SEVERITY_RANK[severity] <= SEVERITY_RANK[each.new.severity] else None

    return measure


def _raised(each: Change) -> int | None:
    return 1 if each.state == "severity_raised" else None


def _risen_to(metric: str) -> Callable[[Change], int | None]:
    def measure(each: Change) -> int | None:
        new, old = _value(each.new, metric), _value(each.old, metric)
        return new if new is not None and each.state != "not_comparable" and (old is None or new > old) else None

    return measure


def _risen_by(metric: str) -> Callable[[Change], int | None]:
    def measure(each: Change) -> int | None:
        new, old = _value(each.new, metric), _value(each.old, metric)
        if new is None or old is None or each.state == "not_comparable":
            return None
        return new - old if new > old else None

    return measure


def _value(record: object, metric: str) -> int | None:
    """The value of a metric; of one that is of functions not the file's, which each new function raises."""
    if not isinstance(record, Metric) or record.metric != metric:
        return None
    return None if metric in WORSE_OF_FUNCTIONS and not record.symbol else record.value
