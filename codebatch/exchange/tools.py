"""Which tools have looked at a batch, and what their rules find."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from codebatch.application.opened_batch import OpenedBatch
from codebatch.model.imported import imports_in
from codebatch.model.task import PIPELINES
from codebatch.query.completeness import tasks_that_give
from codebatch.system.plugins import load_question

_OWN_TASKS = frozenset(task for pipeline in PIPELINES.values() for task in pipeline.tasks)
_RUFF = "ruff"
_RUN_BY = "lint"


def tools_of(batch: OpenedBatch, task: str | None, wanted: Collection[str]) -> dict[str, str]:
    """The tools that may have found something in a batch, each with its version, or nothing where that is not known.

    Of one task alone, or those that are wanted, where any is named. A tool that a task of the user's names besides
    itself is not known here, nor whose findings were imported. Raises InvalidInput or StoreCorrupt.
    """
    records = batch.question.records
    found: dict[str, str] = {}
    imported = imports_in(records.plan.tasks)
    for name in tasks_that_give(batch.question.catalogue, records.choose_tasks(task), ("diagnostic",)):
        if name in imported:
            continue
        found["codebatch" if name in _OWN_TASKS else name] = ""
        if name == _RUN_BY:
            planned = next(each for each in records.plan.tasks if each.name == name)
            found[_RUFF] = planned.tools.get(_RUFF, "")
    return {tool: version for tool, version in found.items() if not wanted or tool in wanted}


def summaries_of(tools: Collection[str]) -> dict[tuple[str, str], str]:
    """What rules find, by tool and code, of those rules that this installation knows."""
    found: dict[tuple[str, str], str] = {}
    if "codebatch" in tools:
        rows = cast("list[dict[str, object]]", load_question("list_rules")({}))
        found.update((("codebatch", str(row["code"])), str(row["summary"])) for row in rows if row["summary"])
    if _RUFF in tools:
        told = cast("dict[str, str]", load_question("summaries")())
        found.update(((_RUFF, code), summary) for code, summary in told.items())
    return found
