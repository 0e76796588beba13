"""The conditions of `check` (SPEC.md "Quality gate"). Each forbids some changes.

new-error, new-warning, new   new findings of at least this severity, and findings raised to it
severity-raised               findings whose severity was raised
cycle                         files in an import cycle that is new or has grown
duplicate                     files with more duplicated lines
unresolved-import             imports of names and files that the project no longer has
broken-use                    uses of names that the project no longer has, through a module
suppression-without-reason    suppression comments that have no reason
gate-changed                  settings of the check that the change changes (evaluated by its caller)
metric:NAME>N                 a value above N that is new or has increased
metric:NAME+N                 a value that has increased by more than N
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec

from codebatch.compare.differences import Change
from codebatch.compare.metrics import RELATION_METRICS, WORSE_FUNCTION_METRICS
from codebatch.compare.states import SEVERITY_RANK
from codebatch.model.record import Diagnostic, Metric, Severity

Verdict = Literal["passed", "failed"]
SEVERITY_RAISED = "severity-raised"
NO_CONDITION = "none"
GATE_CHANGED = "gate-changed"
UNEXPLAINED = "suppression-without-reason"
EXPIRING = "suppression-until"
"""The rule that finds suppressions with a date. `check` judges them by their date instead of by their severity."""
UNRESOLVED_IMPORT = "unresolved-import"
BROKEN_USE = "broken-use"
REFERENCE_CONDITIONS = (UNRESOLVED_IMPORT, BROKEN_USE)
_METRIC_BY_CONDITION = {"cycle": "cycle", "duplicate": "duplicated_lines"}
CONDITION_FORMS = (
    "new-error", "new-warning", "new", SEVERITY_RAISED, *_METRIC_BY_CONDITION, *REFERENCE_CONDITIONS, UNEXPLAINED,
    GATE_CHANGED, NO_CONDITION, "metric:NAME>N", "metric:NAME+N",
)  # fmt: skip
DEFAULT_CONDITIONS = ("new-error", UNRESOLVED_IMPORT)

_METRIC_CONDITION = re.compile(r"metric:([^\s>+]{1,200})([>+])(\d{1,15})\Z", re.ASCII)
_METRIC_PREFIX = re.compile(r"metric:[^\s>+]{1,200}[>+]")
_SEVERITY_BY_CONDITION: dict[str, Severity] = {"new-error": "error", "new-warning": "warning", "new": "hint"}


class BrokenReference(Diagnostic, frozen=True, kw_only=True, tag="diagnostic"):
    """An import or use that a change breaks, as a finding. It is found by comparing two batches, and in none of them.

    `code` is the condition that it violates.
    """


class BrokenReferences(NamedTuple):
    """The imports and uses that a change breaks, by path and line.

    - `not_judged`: the number of those in files that HEAD could not parse completely, and of results that BASE lacks.
    - `lacks_files`: whether HEAD is restricted to paths, so that the importers of its files are not all known.
    """

    found: Sequence[BrokenReference] = ()
    not_judged: int = 0
    lacks_files: bool = False


class Condition(msgspec.Struct, frozen=True):
    """A condition that changes must satisfy.

    `measure` returns a number for a change, or None if the condition does not apply to the change. The change violates
    the condition if the number exceeds `limit`.

    The reported value of the condition is the number of violations if `is_counted` is set, otherwise the greatest
    number. `metric` is a metric of the task whose records are measured, or empty. A condition that is a default is left
    out of a check whose batches lack what it needs (`is_default`).
    """

    text: str
    kind: Literal["diagnostic", "metric"]
    limit: int
    is_counted: bool
    measure: Callable[[Change], int | None]
    metric: str = ""
    is_default: bool = False


class ConditionResult(msgspec.Struct, frozen=True, kw_only=True):
    """A condition of a check, and its result.

    - `value`: the number of findings or, for a metric, the greatest value that is new or has increased. It is null if
      there is no such value.
    - `violations`: the number of changes that exceed the `limit`.
    """

    condition: str
    value: int | None
    limit: int
    violations: int
    verdict: Verdict


def parse_condition(text: str) -> Condition:
    """Parse a condition. Raises ValueError if it is invalid."""
    severity = _SEVERITY_BY_CONDITION.get(text)
    if severity is not None:
        return Condition(text, "diagnostic", 0, True, _measure_new(severity))
    if text == SEVERITY_RAISED:
        return Condition(text, "diagnostic", 0, True, _measure_severity_raised)
    if text == UNEXPLAINED:
        return Condition(text, "diagnostic", 0, True, _measure_unexplained)
    if text == GATE_CHANGED:
        return Condition(text, "diagnostic", 0, True, lambda _: None)
    if text in REFERENCE_CONDITIONS:
        return Condition(text, "diagnostic", 0, True, _measure_broken(text), "dependencies")
    if text in _METRIC_BY_CONDITION:
        metric = _METRIC_BY_CONDITION[text]
        return Condition(text, "metric", 0, True, _measure_value(metric), metric)
    match = _METRIC_CONDITION.match(text)
    if match is None:
        prefix = _METRIC_PREFIX.match(text)
        reason = f": {prefix[0]} must be followed by an integer" if prefix else ""
        raise ValueError(f"{text!r} is not a condition{reason}")
    measure = _measure_value(match[1]) if match[2] == ">" else _measure_increase(match[1])
    return Condition(text, "metric", int(match[3]), False, measure, match[1])


class ConditionResults(NamedTuple):
    """The results of all conditions.

    `forbidden` are the changes that violate a condition, in their order. `allowed` are the new findings that violate
    none, the most severe first. A finding whose severity was raised counts as new.
    """

    judged: list[ConditionResult]
    forbidden: list[Change]
    allowed: list[Change]


def evaluate_conditions(conditions: Sequence[Condition], differences: Iterable[Change]) -> ConditionResults:
    """Evaluate conditions on changes. Return the results of all conditions."""
    measured: list[list[int]] = [[] for _ in conditions]
    forbidden: list[Change] = []
    allowed: list[Change] = []
    for change in differences:
        is_forbidden = False
        for condition, values in zip(conditions, measured, strict=True):
            value = condition.measure(change)
            if value is not None:
                values.append(value)
                is_forbidden |= value > condition.limit
        if is_forbidden:
            forbidden.append(change)
        elif change.state in ("new", "severity_raised"):
            allowed.append(change)
    allowed.sort(key=_new_severity_rank, reverse=True)
    return ConditionResults(
        [_evaluate(*change) for change in zip(conditions, measured, strict=True)], forbidden, allowed
    )


def _new_severity_rank(change: Change) -> int:
    return SEVERITY_RANK[change.new.severity] if isinstance(change.new, Diagnostic) else -1


def _evaluate(condition: Condition, values: Sequence[int]) -> ConditionResult:
    violations = sum(value > condition.limit for value in values)
    value = violations if condition.is_counted else max(values, default=None)
    return ConditionResult(
        condition=condition.text,
        value=value,
        limit=condition.limit,
        violations=violations,
        verdict="failed" if violations else "passed",
    )


def _measure_new(severity: Severity) -> Callable[[Change], int | None]:
    def measure(change: Change) -> int | None:
        if change.state not in ("new", "severity_raised") or type(change.new) is not Diagnostic:
            return None
        before = SEVERITY_RANK[change.old.severity] if isinstance(change.old, Diagnostic) else -1
        return 1 if before < SEVERITY_RANK[severity] <= SEVERITY_RANK[change.new.severity] else None

    return measure


def _measure_broken(code: str) -> Callable[[Change], int | None]:
    return lambda change: 1 if isinstance(change.new, BrokenReference) and change.new.code == code else None


def _measure_severity_raised(change: Change) -> int | None:
    return 1 if change.state == "severity_raised" else None


def _measure_unexplained(change: Change) -> int | None:
    """Return 1 for a new finding of the rule of this name."""
    if change.state != "new" or not isinstance(change.new, Diagnostic):
        return None
    return 1 if change.new.code == UNEXPLAINED else None


def _measure_value(metric: str) -> Callable[[Change], int | None]:
    def measure(change: Change) -> int | None:
        new, old = _metric_value(change.new, metric), _metric_value(change.old, metric)
        return new if new is not None and change.state != "not_comparable" and (old is None or new > old) else None

    return measure


def _measure_increase(metric: str) -> Callable[[Change], int | None]:
    def measure(change: Change) -> int | None:
        new, old = _metric_value(change.new, metric), _metric_value(change.old, metric)
        if old is None and metric in RELATION_METRICS:
            old = 0
        if new is None or old is None or change.state == "not_comparable":
            return None
        return new - old if new > old else None

    return measure


def _metric_value(record: object, metric: str) -> int | None:
    """Return the value of a record if it is the metric `metric`, otherwise None.

    A metric of functions also has a record with its sum for the file. This sum is ignored, because every new function
    increases it.
    """
    if not isinstance(record, Metric) or record.metric != metric:
        return None
    return None if metric in WORSE_FUNCTION_METRICS and not record.symbol else record.value
