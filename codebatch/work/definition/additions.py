"""Tasks for a batch that exists: the settings of the batch apply to them, and they may need its tasks."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from msgspec import UNSET

from codebatch.errors import InvalidInput
from codebatch.model.work.command import CommandId
from codebatch.model.work.work_batch import DEFAULT_POLICY, Work
from codebatch.work.definition.commands import DefinedTask
from codebatch.work.definition.problems import DefinitionProblems
from codebatch.work.definition.settings import BatchSettings
from codebatch.work.definition.table_checks import TableLocation
from codebatch.work.definition.tables import SettingsTable
from codebatch.work.definition.work_files import TaskSource, WorkFile

_OPTION = "--task"
_FILE_SETTINGS = ("clean_env", "env", "env_file", "include", "secret")
"""Settings that a file with added tasks may have, because they apply only to the tasks of the file."""
_BATCH_SETTINGS = [name for name in SettingsTable.__struct_fields__ if name not in _FILE_SETTINGS]


def parse_task_options(definitions: Sequence[str], needs: Sequence[str]) -> list[WorkFile]:
    """Return the tasks that options `NAME=COMMAND` define, each with the same needs. Raises InvalidInput."""
    sources: list[TaskSource] = []
    for definition in definitions:
        name, _, command = definition.partition("=")
        if not command.strip():
            raise InvalidInput(
                f"{_OPTION} {definition!r} is not NAME=COMMAND", hint=f"for example: {_OPTION} 'lint=make lint'"
            )
        sources.append(TaskSource(name, TableLocation(_OPTION, name), {"run": command, "needs": [*needs]}))
    return [WorkFile(Path(_OPTION), _OPTION, (), None, tuple(sources))] if sources else []


class ExtendedBatch(NamedTuple):
    """The batch to which tasks are added. `files` has the tasks of the command line."""

    id: str
    work: Work
    files: list[WorkFile]

    def settings(self, files: Sequence[WorkFile], given: BatchSettings, problems: DefinitionProblems) -> BatchSettings:
        """Return the settings that apply to the tasks of files. Settings that cannot apply are problems."""
        for file in files:
            for key in [key for key in _BATCH_SETTINGS if key in file.settings]:
                place = file.table_location().key_location(file.settings, key)
                problems.add(
                    f"{place} sets `{key}`, but the settings of batch {self.id} apply to added tasks",
                    "put the new tasks into a file without it; to change a limit: codebatch work set max-parallel=4",
                )
        work = self.work
        return replace(
            given,
            root=Path(os.fsdecode(work.root)),
            strategy="parallel",
            on_failure=work.on_failure,
            pools=work.pools,
            limits=work.limits_or_none,
            notes=[],
        )

    def join(
        self,
        tasks: list[DefinedTask],
        groups: Mapping[str, Mapping[str, CommandId]],
        done: Collection[str],
        problems: DefinitionProblems,
    ) -> tuple[dict[str, dict[str, CommandId]], set[str]]:
        """Append the other tasks of the batch to `tasks`, without commands. Return all groups and all done tasks.

        An isolation of `tasks` that the batch does not support is added to the problems.
        """
        trees = self.work.trees
        for task in tasks:
            isolation = UNSET if task.command is None else task.command.isolation
            if isolation is not UNSET and (trees is UNSET or not trees.supports(isolation)):
                message = f'{task.place} sets `isolation = "{isolation}"`, and batch {self.id} has no such trees'
                problems.add(message, "run the task in a batch of its own: codebatch work run --parallel-batches")
        count, place, ids = len(tasks), TableLocation(f"batch {self.id}", ""), {task.id for task in tasks}
        tasks += [
            DefinedTask(id_, place, (), (), {}, None, DEFAULT_POLICY, group=id_.partition("/")[0] if "/" in id_ else "")
            for id_ in self.work.order
            if id_ not in ids
        ]
        joined: dict[str, dict[str, CommandId]] = {}
        for id_ in self.work.order:
            name, separator, key = id_.partition("/")
            if separator:
                joined.setdefault(name, {})[key] = id_
        for task in tasks[:count]:
            if task.id in joined:
                problems.add(f"{task.place} has the name of a group of batch {self.id}", "choose another name")
        for name in sorted(groups.keys() & {*self.work.order}):
            problems.add(f"the group {name} has the name of a task of batch {self.id}", "choose another name")
        joined |= {name: {**joined.get(name, {}), **members} for name, members in groups.items()}
        return joined, {*done, *self.work.done_before}
