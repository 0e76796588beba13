"""The tools that reported the findings of a batch, and the tasks that may report findings of a tool."""

from __future__ import annotations

from codebatch.compare.rules import LINT_TASK
from codebatch.model.analysis.imports import imported_objects
from codebatch.model.task import BUILT_IN_TASKS
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.query.completeness import emitting_tasks
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.sources.records import BatchRecords, restrict_to_task

OWN_TOOL = "codebatch"
RUFF_TOOL = "ruff"

_FINDINGS_FILTER = RecordFilter(kinds=("diagnostic",))


def task_tools(records: BatchRecords, task: str) -> frozenset[str]:
    """Return the tools that findings of a task can name. Raises StoreCorrupt.

    For a custom task, these are the task's own name and all tools that its findings name, but the task may report other
    tools too. For an import, these are only the tools that its findings name.
    """
    if task in BUILT_IN_TASKS:
        return frozenset((OWN_TOOL, RUFF_TOOL) if task == LINT_TASK else (OWN_TOOL,))
    itself = () if task in imported_objects(records.plan.tasks) else (task,)
    return frozenset((*itself, *tools_in_findings(records, task)))


def tools_in_findings(records: BatchRecords, task: str) -> frozenset[str]:
    """Return the tools that the findings of a task name. Raises StoreCorrupt."""
    return frozenset(
        str(record["tool"])
        for record in restrict_to_task(records, task).iter_records(task, _FINDINGS_FILTER, is_auxiliary=True)
    )


class ToolTasks:
    """The tasks of a batch that may report findings of a given tool."""

    def __init__(self, question: BatchQuery) -> None:
        self._records = question.records
        self._names = emitting_tasks(question.catalogue, self._records.task_names, ("diagnostic",))
        self._tools: dict[str, frozenset[str]] = {}

    def reporting_tasks(self, tool: str) -> list[str]:
        """Return the tasks that may report findings of a tool.

        For a custom task or an import whose findings name no other tool, this is true for any tool except codebatch and
        ruff.
        """
        return [name for name in self._names if self._may_report(name, tool)]

    def _may_report(self, task: str, tool: str) -> bool:
        if task not in self._tools:
            self._tools[task] = task_tools(self._records, task)
        known = self._tools[task]
        return tool in known or (task not in BUILT_IN_TASKS and tool not in (OWN_TOOL, RUFF_TOOL) and known <= {task})
