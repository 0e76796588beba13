"""Changes of a batch by task, in the order in which they are applied. Analyses and task lists have the same form."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import msgspec

from codebatch.model.change import ProposedChange, UnrecordedPath
from codebatch.model.change_composition import compose_changes, follows
from codebatch.model.digest import Digest
from codebatch.operations.changes.file_writes import refuse_conflicts
from codebatch.query.status.unrecorded_work import UnrecordedRow, make_unrecorded_rows
from codebatch.scheduling.lifecycle import CommandState


class TaskChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of one task.

    - `needs`: the tasks that this task needs, directly or not. Its changes were made after theirs.
    - `changes`: the chosen changes, sorted by path, at most one for each path.
    - `change_set`: the digest of the change set of a task of a task list, or empty.
    - `unchosen`: the number of changes of the task that were not chosen.
    - `unrecorded`: the chosen paths with work that the change set does not record, and those that are ignored.
    - `state`: the state of a task of a task list. Only the changes of tasks that are DONE are applied.
    """

    task: str
    needs: frozenset[str] = frozenset()
    changes: tuple[ProposedChange, ...]
    change_set: Digest = Digest("")
    unchosen: int = 0
    unrecorded: tuple[UnrecordedPath, ...] = ()
    state: CommandState = CommandState.DONE

    @property
    def is_done(self) -> bool:
        """Whether the changes are final."""
        return self.state is CommandState.DONE


class BatchChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of a batch.

    - `tasks`: each task comes after the tasks that it needs.
    - `root`: the directory that the paths are relative to, by default.
    - `commit`: the commit that the changes were made for. Empty if there is none.
    """

    tasks: tuple[TaskChanges, ...]
    root: bytes
    commit: str = ""

    def proposed(self) -> list[ProposedChange]:
        """Return the changes of all tasks, sorted by path, then in the order of the tasks."""
        return sorted(self._iter_changes(), key=lambda proposed: proposed.change.path)

    def composed(self) -> list[ProposedChange]:
        """Return one change for each changed file, sorted by path.

        If each task that changes a file needs the task before it, and began with its result, the changes are composed.
        Such a change has the name of the last task, and the sums of the lines. Changes that undo each other are left
        out. Raises InvalidInput if other tasks change the same file.
        """
        composed: list[ProposedChange] = []
        for chain in self.chains():
            change = compose_changes([proposed.change for proposed in chain])
            if change is not None:
                composed.append(
                    msgspec.structs.replace(
                        chain[-1],
                        change=change,
                        added=sum(proposed.added for proposed in chain),
                        removed=sum(proposed.removed for proposed in chain),
                    )
                )
        refuse_conflicts(composed)
        return composed

    def chains(self) -> list[list[ProposedChange]]:
        """Return the changes of all tasks in chains, sorted by path.

        In a chain, each task needs the one before it, and changed the same file, beginning with its result. If not all
        changes of a file form a chain, each of them is one.
        """
        by_path: dict[bytes, list[ProposedChange]] = {}
        for proposed in self._iter_changes():
            by_path.setdefault(proposed.change.path, []).append(proposed)
        needs = {task.task: task.needs for task in self.tasks}
        chains: list[list[ProposedChange]] = []
        for _, same_path in sorted(by_path.items()):
            is_chain = all(
                before.task in needs[after.task] and follows(before.change, after.change)
                for before, after in itertools.pairwise(same_path)
            )
            chains += [same_path] if is_chain else [[proposed] for proposed in same_path]
        return chains

    def map_changes(self, function: Callable[[ProposedChange], ProposedChange]) -> BatchChanges:
        """Return the changes that a function makes of these."""
        tasks = (msgspec.structs.replace(task, changes=tuple(map(function, task.changes))) for task in self.tasks)
        return msgspec.structs.replace(self, tasks=tuple(tasks))

    def only(self, chosen: Callable[[ProposedChange], bool]) -> BatchChanges:
        """Return some of the changes. The others count as not chosen."""
        tasks: list[TaskChanges] = []
        for task in self.tasks:
            changes = tuple(filter(chosen, task.changes))
            unchosen = task.unchosen + len(task.changes) - len(changes)
            tasks.append(msgspec.structs.replace(task, changes=changes, unchosen=unchosen))
        return msgspec.structs.replace(self, tasks=tuple(tasks))

    def only_done(self) -> BatchChanges:
        """Return the changes of tasks that are DONE."""
        return msgspec.structs.replace(self, tasks=tuple(task for task in self.tasks if task.is_done))

    @property
    def lost(self) -> list[UnrecordedRow]:
        """The paths with work that the change sets do not record."""
        return [row for row in self.unrecorded if row.is_lost]

    @property
    def unrecorded(self) -> list[UnrecordedRow]:
        """The paths that the change sets do not record, in the order of the tasks."""
        return [row for task in self.tasks for row in make_unrecorded_rows(task.task, task.unrecorded)]

    def _iter_changes(self) -> Iterator[ProposedChange]:
        return (proposed for task in self.tasks for proposed in task.changes)


def group_by_task(proposed: Sequence[ProposedChange], order: Sequence[str]) -> tuple[TaskChanges, ...]:
    """Return the changes of an analysis by task. `order` has the names of all tasks."""
    by_task: dict[str, list[ProposedChange]] = {task: [] for task in order}
    for change in proposed:
        by_task[change.task].append(change)
    return tuple(TaskChanges(task=task, changes=tuple(changes)) for task, changes in by_task.items() if changes)
