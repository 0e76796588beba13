"""Which tools have looked at a batch, and what their rules find."""

from __future__ import annotations

import contextlib
from collections.abc import Collection

from codebatch.errors import StoreCorrupt, UnknownId
from codebatch.model.analysis.imports import imports_in
from codebatch.operations.api.batch import Batch
from codebatch.operations.queries.tools import OURS, RUFF, named_tools, tools_of_task
from codebatch.plugins.worker_services import language_services
from codebatch.query.completeness import tasks_that_give
from codebatch.query.sources.records import BatchRecords
from codebatch.store.batches.batches import open_batch


def tools_of(batch: Batch, task: str | None, wanted: Collection[str]) -> dict[str, str]:
    """The tools that may have found something in a batch, each with its version, or nothing where that is not known.

    Of one task alone, or those that are wanted, where any is named. What a task of the user's names besides itself is
    known of what it has found, here or in the batches that this one started from; whose findings were imported is not.
    Raises InvalidInput or StoreCorrupt.
    """
    records = batch.question.records
    planned = {each.name: each for each in records.plan.tasks}
    imported = imports_in(planned.values())
    found: dict[str, str] = {}
    for name in tasks_that_give(batch.question.catalogue, records.choose_tasks(task), ("diagnostic",)):
        if name not in imported:
            tools = tools_of_task(records, name)
            more = _named_before(batch, name) if name in tools else ()
            found.update((tool, planned[name].tools.get(RUFF, "") if tool == RUFF else "") for tool in (*tools, *more))
    return {tool: version for tool, version in sorted(found.items()) if not wanted or tool in wanted}


def _named_before(batch: Batch, task: str) -> Collection[str]:
    """The tools that findings of a task named in the batches that one started from, of those that there are still."""
    store = batch.question.store
    found: set[str] = set()
    for each in batch.question.batch.about.bases:
        with contextlib.suppress(StoreCorrupt, UnknownId):
            records = BatchRecords(store, open_batch(store, each))
            if task in records.task_names and task not in imports_in(records.plan.tasks):
                found |= named_tools(records, task)
    return found


def summaries_of(tools: Collection[str]) -> dict[tuple[str, str], str]:
    """What rules find, by tool and code, of those rules that this installation knows."""
    found: dict[tuple[str, str], str] = {}
    if OURS in tools:
        rows = language_services().list_rules({})
        found.update(((OURS, str(row["code"])), str(row["summary"])) for row in rows if row["summary"])
    if RUFF in tools:
        told = language_services().summaries()
        found.update(((RUFF, code), summary) for code, summary in told.items())
    return found
