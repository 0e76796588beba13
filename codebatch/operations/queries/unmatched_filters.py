"""Filters that nothing in a batch can pass, such as a path with a typo. An empty answer then proves nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from string import digits

from codebatch.compare.rules import LINT_TASK
from codebatch.errors import InvalidInput
from codebatch.model.task import BUILT_IN_TASKS
from codebatch.model.text.suggestions import closest_word, did_you_mean_text
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.operations.queries.tools import OWN_TOOL, RUFF_TOOL, ToolTasks
from codebatch.query.answers.counting import count_records
from codebatch.query.completeness import emitting_tasks
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.filters.paths import PathFilter

PARSE_RULES = ("syntax-error", "partial-parse")
"""The rules of the task `parse`."""


def nothing_read(questions: Sequence[BatchQuery], record_filter: RecordFilter) -> Iterator[str]:
    """Yield the reasons why an empty answer proves nothing: the first batch has no files, or nothing passes a filter.

    Raises InvalidInput or StoreCorrupt.
    """
    about = questions[0].batch.about
    if not about.items:
        yield f"batch {about.batch_id} has no files"
    else:
        yield from unmatched_filters(questions, record_filter)


def unmatched_filters(questions: Sequence[BatchQuery], record_filter: RecordFilter) -> Iterator[str]:
    """Yield a text for each filter of paths, languages, tools or metrics that nothing in some batches can pass.

    Raises InvalidInput or StoreCorrupt.
    """
    batches = [question.records for question in questions]
    path = PathFilter(record_filter.path)
    if record_filter.path and not any(path.matches(item.path) for records in batches for item in records.items):
        shown = record_filter.path if isinstance(record_filter.path, str) else ", ".join(record_filter.path)
        yield f"no analysed file matches the path {shown!r}"
    if record_filter.languages:
        known = {language for records in batches for language in records.languages.values()}
        yield from (f"no analysed file is {language}" for language in record_filter.languages if language not in known)
    for tool in record_filter.tools:
        if not any(ToolTasks(question).reporting_tasks(tool) for question in questions):
            yield f"no task reports findings of the tool {tool!r}"
    for metric in record_filter.metrics:
        named = RecordFilter(metrics=(metric,))
        if not any(count_records(records, records.choose_tasks(None), named, "kind").total for records in batches):
            yield f"no record has the metric {metric!r}"


def refuse_unknown_rules(question: BatchQuery, record_filter: RecordFilter) -> None:
    """Raise InvalidInput if the filter names a rule that no task of the batch has, or a tool that no task reports.

    The rules of tasks that do not come with codebatch are unknown. If the batch has such a task, there is only a note
    about a similar rule with the same letters.
    """
    for tool in record_filter.tools:
        if not ToolTasks(question).reporting_tasks(tool):
            raise InvalidInput(
                f"no task reports findings of the tool {tool!r}", hint=did_you_mean_text(tool, (OWN_TOOL, RUFF_TOOL))
            )
    known = _known_rules(question) if record_filter.codes else frozenset()
    names = emitting_tasks(question.catalogue, question.records.task_names, ("diagnostic",))
    for code in record_filter.codes:
        if any(fnmatchcase(rule, code) for rule in known):
            continue
        similar = closest_word(code.upper(), known) or closest_word(code, known)
        if set(names) <= set(BUILT_IN_TASKS):
            hint = f"did you mean {similar!r}?" if similar else "see: codebatch rules list"
            raise InvalidInput(f"no such rule {code!r}", hint=hint)
        if similar and similar.rstrip(digits) == code.upper().rstrip(digits):
            question.note(f"no finding has the rule {code!r}; did you mean {similar!r}?")


def _known_rules(question: BatchQuery) -> frozenset[str]:
    """Return the IDs of the rules of codebatch, and of the findings of the batch."""
    from codebatch.plugins.worker_services import language_services  # Deferred: it imports parsers.

    records = question.records
    lint = next((task.config for task in records.plan.tasks if task.name == LINT_TASK), {})
    services = language_services()
    found = (code for task in records.task_names for code in records.counts(task).codes)
    listed = (str(rule["code"]) for rule in services.list_rules(lint))
    return frozenset((*PARSE_RULES, *found, *listed, *services.rule_summaries()))
