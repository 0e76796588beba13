"""Conditions as a user gives them, what they need of the batches, and refusal of those that HEAD cannot violate."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from codebatch.compare.conditions import (
    CONDITION_FORMS,
    DEFAULT_CONDITIONS,
    NO_CONDITION,
    REFERENCE_CONDITIONS,
    UNEXPLAINED,
    BrokenReferences,
    Condition,
    parse_condition,
)
from codebatch.compare.metrics import METRICS_OMITTED_IF_0
from codebatch.compare.rules import LINT_TASK
from codebatch.errors import InvalidInput
from codebatch.model.text.suggestions import did_you_mean_text
from codebatch.operations import NoteCallback
from codebatch.operations.api.batch import Batch
from codebatch.operations.comparison.comparison import Comparison
from codebatch.plugins.worker_services import absence_services
from codebatch.query.answers.numbers import metric_task
from codebatch.query.answers.sql_views import FILE_METRICS, FUNCTION_METRICS
from codebatch.query.completeness import tasks_completeness
from codebatch.query.missing_tasks import task_not_run_error

# Metrics that a batch may lack. Their value is then 0, because there are no import cycles or duplicates.
_KNOWN_METRICS = frozenset({*FILE_METRICS, *FUNCTION_METRICS, *METRICS_OMITTED_IF_0})


def check_metric(batch: Batch, metric: str) -> None:
    """Raise InvalidInput if a batch does not have a metric: a condition on the metric could never be violated."""
    task = metric_task(metric)
    if metric in _KNOWN_METRICS and task not in batch.question.records.task_names:
        raise task_not_run_error(f"the batch has no metric {metric!r}: it did not run the task {task}", (task,))
    if metric in ("", *_KNOWN_METRICS) or any(True for _ in batch.metrics(metric=metric, limit=1)):
        return
    known = [name for name, _ in batch.stats("metric", kind="metric").result.counts]
    raise InvalidInput(
        f"the batch has no metric {metric!r}", hint=did_you_mean_text(metric, sorted({*_KNOWN_METRICS, *known}))
    )


def require_reasons_rule(head: Batch, conditions: Sequence[Condition]) -> None:
    """Raise InvalidInput if a condition demands reasons of suppressions, but the rule that finds them is off."""
    if all(condition.text != UNEXPLAINED for condition in conditions):
        return
    settings = next((task.config for task in head.question.records.plan.tasks if task.name == LINT_TASK), None)
    is_off = None if settings is None else absence_services().rule_switch(settings)
    if is_off is None or is_off(b"a", "codebatch", UNEXPLAINED):
        raise InvalidInput(
            f"--fail-on {UNEXPLAINED} needs the rule of this name, which is off in batch {head.id}",
            hint=f'turn it on, and run codebatch again: [tasks.lint] on = ["{UNEXPLAINED}"]',
        )


def judgeable_conditions(
    conditions: Sequence[Condition], batch: Batch, note: NoteCallback, *, changed_lines: bool = False
) -> list[Condition]:
    """Return the conditions that can be judged with a batch. Only defaults are left out. A note has the reason.

    Broken imports need the imports of all files. They are seldom on changed lines, so `changed_lines` leaves them out
    without a note.
    """
    defaults = [each for each in conditions if each.is_default and each.text in REFERENCE_CONDITIONS]
    records = batch.question.records
    reason = ""
    if defaults and batch.question.batch.about.paths:
        reason = f"batch {batch.id} is restricted to paths"
    elif defaults and "dependencies" not in records.task_names:
        reason = f"batch {batch.id} did not run the task dependencies"
    elif defaults and not tasks_completeness(records, records.plan.needed_for("dependencies")).is_complete:
        reason = f"batch {batch.id} lacks imports of files"
    for condition in defaults if reason else ():
        note(f"{condition.text} was not judged: {reason}")
    return [each for each in conditions if each not in defaults or not (reason or changed_lines)]


def compare_for_conditions(older: Batch, newer: Batch, conditions: Sequence[Condition], path: str) -> Comparison:
    """Compare the records that conditions need, in the files that a path selects.

    Raises InvalidInput if the path selects no file.
    """
    kinds = dict.fromkeys(("diagnostic", *(condition.kind for condition in conditions)))
    comparison = newer.compare(older, kind=tuple(kinds), path=path)
    if path and (reasons := list(comparison.reasons_for_nothing())):
        raise InvalidInput("; ".join(reasons))
    return comparison


def find_broken(comparison: Comparison, conditions: Sequence[Condition]) -> BrokenReferences:
    """Return the broken references that some conditions forbid."""
    codes = [condition.text for condition in conditions if condition.text in REFERENCE_CONDITIONS]
    if not codes:
        return BrokenReferences()
    from codebatch.operations.gate.broken_references import find_broken_references  # Imported late: it needs parsers.

    return find_broken_references(comparison, codes)


def parse_conditions(texts: Sequence[str]) -> list[Condition]:
    """Parse conditions, by default DEFAULT_CONDITIONS. With `none`, nothing fails. Raises InvalidInput."""
    if NO_CONDITION in texts:
        if len(set(texts)) > 1:
            raise InvalidInput(f"{NO_CONDITION} cannot be used with other conditions")
        return []
    try:
        parsed = [parse_condition(text) for text in dict.fromkeys(texts or DEFAULT_CONDITIONS)]
        return parsed if texts else [replace(condition, is_default=True) for condition in parsed]
    except ValueError as error:
        raise InvalidInput(str(error), hint=f"one of: {', '.join(CONDITION_FORMS)}") from error
