"""Filters that nothing in a batch can pass, such as a path with a typo. An empty answer then proves nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.operations.queries.tools import ToolTasks
from codebatch.query.answers.counting import count_records
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.filters.paths import PathFilter


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
