"""Outputs of tasks that other tasks use, and tasks that may be skipped (SPEC.md "Outputs of commands").

The outputs of a task are collected only if something needs them: a placeholder, or `skip_if_unchanged` of this task or
of a task that needs it. So a list that uses `outputs` only to infer dependencies costs nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec
from msgspec import UNSET

from codebatch.model.graph import find_reachable
from codebatch.model.work.command import CommandId
from codebatch.model.work.placeholders import is_outputs_name
from codebatch.model.work.work_batch import WorkEdge
from codebatch.work.definition.commands import DefinedTask
from codebatch.work.definition.problems import DefinitionProblems
from codebatch.work.definition.validation import TaskNameResolver

OUTPUTS_OF_TASKS_MAX = 10_000
"""Maximum number of tasks whose outputs one task uses."""

_UsedOutputs = dict[str, tuple[CommandId, ...]]


def connect_outputs(
    tasks: Sequence[DefinedTask],
    groups: Mapping[str, Mapping[str, CommandId]],
    done: Collection[str],
    edges: Sequence[WorkEdge],
    problems: DefinitionProblems,
) -> list[DefinedTask]:
    """Return the tasks with the outputs that they use and that are collected. `done` is as in `resolve_edges`."""
    used = _OutputsReader(tasks, groups, done, edges, problems).read_all()
    collected = {id_ for by_name in used.values() for ids in by_name.values() for id_ in ids}
    connected: list[DefinedTask] = []
    for task in tasks:
        by_name, command = used.get(task.id), task.command
        if command is not None and task.outputs and (task.id in collected or command.skip_if_unchanged):
            command = msgspec.structs.replace(command, outputs=task.outputs)
        if command is None or not by_name:
            connected.append(task if command is task.command else task._replace(command=command))
            continue
        ids = tuple(sorted({id_ for ids in by_name.values() for id_ in ids}))
        policy = msgspec.structs.replace(task.policy, outputs_of=ids)
        command = msgspec.structs.replace(command, outputs_of=by_name)
        connected.append(task._replace(command=command, policy=policy))
    return connected


class _OutputsReader:
    """A reader of the placeholders for outputs. Errors are reported once for each group."""

    def __init__(
        self,
        tasks: Sequence[DefinedTask],
        groups: Mapping[str, Mapping[str, CommandId]],
        done: Collection[str],
        edges: Sequence[WorkEdge],
        problems: DefinitionProblems,
    ) -> None:
        self._tasks = {task.id: task for task in tasks}
        self._resolver = TaskNameResolver(tasks, groups, done, problems)
        self._groups = groups
        self._problems = problems
        self._needs: dict[CommandId, list[CommandId]] = {}
        self._reported: set[tuple[str, str]] = set()
        for edge in edges:
            if edge.kind == "needs":
                self._needs.setdefault(edge.task, []).append(edge.on)

    def read_all(self) -> dict[CommandId, _UsedOutputs]:
        """Map each task that uses outputs to the tasks that write them, by the name in the placeholder."""
        return {id_: used for id_, task in self._tasks.items() if (used := self._read_task(task))}

    def _read_task(self, task: DefinedTask) -> _UsedOutputs:
        command = task.command
        if command is None:
            return {}
        if command.skip_if_unchanged:
            self._check_skipping(task)
        names = sorted(filter(is_outputs_name, command.placeholders()))
        if not names and not command.skip_if_unchanged:
            return {}
        needed = {*find_reachable(self._needs.get(task.id, ()), lambda id_: self._needs.get(id_, ()))}
        used: _UsedOutputs = {}
        for name in names:
            reference = name.removeprefix("tasks.").removesuffix(".outputs")
            ids = tuple(self._resolver.resolve_name(task, reference, "needs"))
            self._check_reference(task, reference, ids, needed)
            used[reference] = ids
        if command.skip_if_unchanged and (written := sorted(id_ for id_ in needed if self._tasks[id_].outputs)):
            used[""] = tuple(written)
        return used

    def _check_skipping(self, task: DefinedTask) -> None:
        if not task.inputs:
            hint = "set `inputs`: patterns of all files that it reads"
            self._report(task, "skip_if_unchanged", "sets `skip_if_unchanged` without `inputs`", hint)
        if task.command is not None and task.command.isolation is not UNSET:
            hint = "its changes would not be made again; remove `isolation` or `skip_if_unchanged`"
            self._report(task, "isolation", "sets `skip_if_unchanged` and `isolation`", hint)

    def _check_reference(
        self, task: DefinedTask, reference: str, ids: Sequence[CommandId], needed: Collection[CommandId]
    ) -> None:
        use = f"uses {{tasks.{reference}.outputs}}, but"
        unneeded = next((id_ for id_ in ids if id_ not in needed), None)
        silent = next((id_ for id_ in ids if not self._tasks[id_].outputs), None)
        name = reference.partition("/")[0]
        if not ids and name not in self._groups and not self._problems.count:
            self._report(task, reference, f"{use} {name!r} is marked as done, so it does not run")
        elif unneeded is not None:
            self._report(task, reference, f"{use} does not need {unneeded!r}", f'add it: needs = ["{reference}"]')
        elif silent is not None:
            hint = f"set `outputs` of {name!r}: patterns of the files that it writes"
            self._report(task, reference, f"{use} {silent!r} has no `outputs`", hint)
        elif len(ids) > OUTPUTS_OF_TASKS_MAX:
            message = f"{use} this is more than {OUTPUTS_OF_TASKS_MAX:,} tasks"
            self._report(task, reference, message, "add a task that combines their outputs")

    def _report(self, task: DefinedTask, subject: str, message: str, hint: str | None = None) -> None:
        if (task.group or task.id, subject) not in self._reported:
            self._reported.add((task.group or task.id, subject))
            self._problems.add(f"{task.place.file_and_line}: {task.group or task.id!r} {message}", hint)
