"""The tools that analysed a batch, and the summaries of their rules."""

from __future__ import annotations

import contextlib
from collections.abc import Collection

from codebatch.errors import StoreCorrupt, UnknownId
from codebatch.model.analysis.imports import imported_objects
from codebatch.operations.api.batch import Batch
from codebatch.operations.queries.tools import OWN_TOOL, RUFF_TOOL, task_tools, tools_in_findings
from codebatch.plugins.worker_services import language_services
from codebatch.query.completeness import emitting_tasks
from codebatch.query.sources.records import BatchRecords
from codebatch.store.batches.batch_directory import open_batch


def possible_tools(batch: Batch, task: str | None, reported_tools: Collection[str]) -> dict[str, str]:
    """Return the tools that may have reported findings in a batch. Map each tool to its version, or to "" if unknown.

    `task` and `reported_tools` restrict the tools. The tools of a custom task are known only from its findings: those
    of this batch, and those of its bases. Imported findings of bases do not count. Raises InvalidInput or StoreCorrupt.
    """
    records = batch.question.records
    planned = {planned_task.name: planned_task for planned_task in records.plan.tasks}
    imported = imported_objects(planned.values())
    versions: dict[str, str] = {}
    for name in emitting_tasks(batch.question.catalogue, records.choose_tasks(task), ("diagnostic",)):
        if name not in imported:
            tools = task_tools(records, name)
            more = _list_tools_in_bases(batch, name) if name in tools else ()
            versions.update(
                (tool, planned[name].tools.get(RUFF_TOOL, "") if tool == RUFF_TOOL else "") for tool in (*tools, *more)
            )
    return {tool: version for tool, version in sorted(versions.items()) if not reported_tools or tool in reported_tools}


def _list_tools_in_bases(batch: Batch, task: str) -> Collection[str]:
    """Return the tools that reported findings of a task in the bases of a batch: the batches whose results it reused.

    A base is skipped if it is damaged or no longer exists, or if its findings of the task were imported.
    """
    store = batch.question.store
    names: set[str] = set()
    for base in batch.question.batch.about.bases:
        with contextlib.suppress(StoreCorrupt, UnknownId):
            records = BatchRecords(store, open_batch(store, base))
            if task in records.task_names and task not in imported_objects(records.plan.tasks):
                names |= tools_in_findings(records, task)
    return names


def rule_summaries(tools: Collection[str]) -> dict[tuple[str, str], str]:
    """Return the summaries of rules of this installation by tool and rule ID. Only rules of `tools` are included."""
    summaries: dict[tuple[str, str], str] = {}
    if OWN_TOOL in tools:
        rows = language_services().list_rules({})
        summaries.update(((OWN_TOOL, str(row["code"])), str(row["summary"])) for row in rows if row["summary"])
    if RUFF_TOOL in tools:
        ruff_summaries = language_services().rule_summaries()
        summaries.update(((RUFF_TOOL, code), summary) for code, summary in ruff_summaries.items())
    return summaries
