"""Changes of the isolated tasks of a task list."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from codebatch.errors import BatchIncomplete, InvalidInput
from codebatch.model.change import ProposedChange
from codebatch.model.graph import find_reachable
from codebatch.model.text.suggestions import did_you_mean_text
from codebatch.model.work.command import CommandId
from codebatch.operations.changes.task_changes import BatchChanges, TaskChanges
from codebatch.query.filters.paths import PathFilter, PathPatterns
from codebatch.query.status.work_status import CommandStatus, WorkBatchStatus, read_work_status
from codebatch.scheduling.lifecycle import CommandState
from codebatch.scheduling.work.tree_inputs import order_by_needs
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.work.change_sets import read_change_set

_SIMILAR_COMPARED_MAX = 2000
_TASKS_NAMED_MAX = 5


def read_work_changes(
    store: StoreDir,
    batch: BatchDir,
    tasks: Sequence[str] = (),
    path: PathPatterns = "",
    status: WorkBatchStatus | None = None,
) -> BatchChanges:
    """Return the changes of the tasks of a task list, by default of all tasks.

    For a task that is DONE, these are the changes of its last successful attempt. Otherwise they are those of its last
    attempt. `path` is as in PathFilter. `status` is the state of the batch if the caller has read it.

    Raises InvalidInput if the batch has no task of a name, and StoreCorrupt if a change set cannot be read.
    """
    status = read_work_status(store, batch) if status is None else status
    chosen = _choose_tasks(batch, status, tasks)
    reader = _TaskChangesReader(store, batch, status, PathFilter(path))
    trees = status.work.trees
    return BatchChanges(
        tasks=tuple(reader.read(command) for command in reader.ordered() if command.changes and command.id in chosen),
        root=status.work.root if trees is UNSET or not trees.repository else trees.repository,
        commit="" if trees is UNSET else trees.base,
    )


def check_done(batch: BatchDir, status: WorkBatchStatus, tasks: Sequence[str]) -> None:
    """Raise BatchIncomplete if a named task is not DONE."""
    unfinished = [
        command for command in status.commands if command.state is not CommandState.DONE and command.id in tasks
    ]
    if unfinished:
        names = ", ".join(f"{command.id} is {command.state.value}" for command in unfinished[:_TASKS_NAMED_MAX])
        raise BatchIncomplete(
            f"nothing is written: {names}, and only changes of tasks that are DONE can be applied",
            hint=f"see: codebatch status --batch {batch.id}",
        )


def _choose_tasks(batch: BatchDir, status: WorkBatchStatus, tasks: Sequence[str]) -> frozenset[CommandId]:
    known = [command.id for command in status.commands]
    for task in tasks:
        if task not in known:
            hint = did_you_mean_text(task, known[:_SIMILAR_COMPARED_MAX])
            raise InvalidInput(f"batch {batch.id} has no task {task!r}", hint=hint)
    return frozenset(map(CommandId, tasks) if tasks else known)


class _TaskChangesReader:
    def __init__(self, store: StoreDir, batch: BatchDir, status: WorkBatchStatus, path_filter: PathFilter) -> None:
        self._objects = store.objects()
        self._commands = status.commands
        self._filter = path_filter
        numbers = {command.id: number for number, command in enumerate(status.commands)}
        self._needs: dict[int, set[int]] = {number: set() for number in numbers.values()}
        for edge in status.work.edges:
            if edge.kind == "needs":
                self._needs[numbers[edge.task]].add(numbers[edge.on])
        self._numbers = numbers

    def ordered(self) -> list[CommandStatus]:
        """Return the tasks, each after the tasks that it needs, otherwise in the order of the list."""
        numbers = order_by_needs(self._needs, range(len(self._commands)))
        return [self._commands[number] for number in numbers]

    def read(self, command: CommandStatus) -> TaskChanges:
        """Return the changes of a task. Raises StoreCorrupt."""
        change_set = read_change_set(self._objects, command.changes)
        changes = tuple(
            ProposedChange(
                change=one.change,
                task=command.id,
                added=one.added,
                removed=one.removed,
            )
            for one in change_set.changes
            if self._filter.matches(one.change.path)
        )
        return TaskChanges(
            task=command.id,
            needs=frozenset(self._commands[one].id for one in self._all_needs(self._numbers[command.id])),
            changes=changes,
            change_set=command.changes,
            unchosen=len(change_set.changes) - len(changes),
            unrecorded=tuple(each for each in change_set.unrecorded if self._filter.matches(each.path)),
            state=command.state,
        )

    def _all_needs(self, number: int) -> list[int]:
        return find_reachable(self._needs[number], self._needs.__getitem__)
