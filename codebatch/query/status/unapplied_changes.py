"""Changes of the isolated tasks of a task list that `codebatch apply` has not written yet."""

from __future__ import annotations

import contextlib

import msgspec

from codebatch.errors import CorruptFile, StoreCorrupt
from codebatch.model.change import ChangeSet
from codebatch.model.text.quantities import count_text
from codebatch.model.work.application import AppliedChangeSet
from codebatch.model.work.command import CommandId
from codebatch.query.status.work_status import WorkBatchStatus
from codebatch.scheduling.lifecycle import CommandState
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.work.applications import ApplicationStore
from codebatch.store.work.change_sets import read_change_set


class UnappliedChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks that are DONE and whose changes are not applied, and the number of their changes.

    `unchanged` are the isolated tasks that are DONE and changed nothing.
    """

    tasks: tuple[CommandId, ...] = ()
    changes: int = 0
    unchanged: tuple[CommandId, ...] = ()

    @property
    def text(self) -> str:
        """The numbers of changes and tasks, as text."""
        return f"{count_text(self.changes, 'change')} of {count_text(len(self.tasks), 'task')}"


def read_unapplied_changes(store: StoreDir, batch: BatchDir, status: WorkBatchStatus) -> UnappliedChanges:
    """Return the changes of a batch that are not applied.

    A damaged file in `applied/` counts as missing. The changes of a damaged change set are not counted.
    """
    change_sets = {
        command.id: command.changes
        for command in status.commands
        if command.state is CommandState.DONE and command.changes and command.reason is None
    }
    if not change_sets:
        return UnappliedChanges()
    applied: frozenset[AppliedChangeSet] = frozenset()
    with contextlib.suppress(CorruptFile):
        applied = ApplicationStore(batch.files, batch.root).read_applied()
    objects = store.objects()
    tasks: list[CommandId] = []
    unchanged: list[CommandId] = []
    changes = 0
    for task, digest in change_sets.items():
        found: ChangeSet | None = None
        with contextlib.suppress(StoreCorrupt):
            found = read_change_set(objects, digest)
        if found is not None and not found.changes:
            unchanged += [] if found.lost else [task]
        elif AppliedChangeSet(task=task, changes=digest) not in applied:
            tasks.append(task)
            changes += 0 if found is None else len(found.changes)
    return UnappliedChanges(tasks=tuple(tasks), changes=changes, unchanged=tuple(unchanged))
