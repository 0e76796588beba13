"""A work batch with its status. It also resolves references to batches, and makes errors for incomplete batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import msgspec
from msgspec import UNSET

from codebatch.errors import (
    BatchBlocked,
    BatchCancelled,
    BatchIncomplete,
    BatchRemoved,
    InvalidInput,
    StoreError,
)
from codebatch.model.change import UnrecordedPath
from codebatch.model.text.quantities import count_text, human_seconds
from codebatch.model.work.command import CommandId
from codebatch.model.work.event import instant_ns
from codebatch.operations import NoteCallback, ignore_note
from codebatch.query.status.unapplied_changes import UnappliedChanges, read_unapplied_changes
from codebatch.query.status.unrecorded_work import read_unrecorded_work
from codebatch.query.status.work_status import CommandStatus, WorkBatchStatus, read_work_status
from codebatch.scheduling.lifecycle import BatchState, CommandState
from codebatch.scheduling.work.estimate import Eta
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir, check_kind, iter_batches
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.work.events import EventReader
from codebatch.store.work.notifications import NotificationHistory, read_notifications
from codebatch.store.work.trees import BatchTrees, TreeName
from codebatch.system.clock import wall_ns
from codebatch.work.limit_texts import cap_text, raise_hint

TASKS_NAMED_MAX = 5
"""Maximum number of commands or batches that a message names."""


class WorkBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch of a task list, and its state when it was read."""

    store: StoreDir
    batch: BatchDir
    standing: WorkBatchStatus

    def commands_in(self, *states: CommandState) -> list[CommandStatus]:
        """Return the tasks of the batch that are in the given states, in the order of the task list."""
        return [command for command in self.standing.commands if command.state in states]

    @property
    def ended_ns(self) -> int | None:
        """The time when the batch ended, in nanoseconds since 1970.

        None if the batch has not ended or no task ever started.
        """
        state = self.standing.state
        if not state.is_final or not any(command.round for command in self.standing.commands):
            return None
        names = (layout.OUTCOMES, *([layout.REQUESTS] if state is BatchState.CANCELLED else []))
        stats = [self.batch.files.stat(self.batch.root / name) for name in names]
        return max((stat.st_mtime_ns for stat in stats if stat is not None), default=None)

    @property
    def eta(self) -> Eta | None:
        """The estimated remaining time, from the last report of the process that runs the batch.

        None if it is unknown, or if the process is not responding.
        """
        if self.standing.coordinator is None or self.standing.silent_since_ns is not None:
            return None
        progress = EventReader(self.batch.files, self.batch.root).last_progress()
        if progress is None or progress.eta_seconds is None:
            return None
        past = max(0.0, (wall_ns() - instant_ns(progress.at)) / 1e9)
        low, middle, high = (max(0.0, round(estimate - past, 1)) for estimate in progress.eta_seconds)
        return Eta((low, middle, high), progress.without_estimate)

    @property
    def notifications(self) -> NotificationHistory:
        """The notifications that failed, or that a killed process owes."""
        return read_notifications(self.batch, self.standing.work.notify)

    @property
    def unapplied(self) -> UnappliedChanges:
        """The changes of isolated tasks that `codebatch apply` has not written."""
        return read_unapplied_changes(self.store, self.batch, self.standing)

    @property
    def unrecorded(self) -> dict[CommandId, tuple[UnrecordedPath, ...]]:
        """The paths with work of isolated tasks that their changes do not record, for each such task."""
        return read_unrecorded_work(self.store, self.standing.commands)

    def kept_tree(self, command: CommandStatus) -> Path | None:
        """Return the tree of the latest attempt of a task, or None if it does not exist."""
        trees = self.standing.work.trees
        if trees is UNSET:
            return None
        batch_trees = BatchTrees(self.store, self.batch.id, trees)
        origin = batch_trees.origin(TreeName.of_attempt(command.id, command.ended))
        return None if origin is None else batch_trees.path(origin)

    @property
    def shortfall(self) -> BatchIncomplete | None:
        """The error that describes the tasks that are not done, or whose work is not recorded completely, or None."""
        state, id_ = self.standing.state, self.batch.id
        if state is BatchState.COMPLETED:
            partial = [command for command in self.standing.commands if command.unrecorded]
            return (
                None
                if not partial
                else BatchIncomplete(
                    f"not all work of {count_text(len(partial), 'task')} is recorded: {first_command_names(partial)}",
                    hint=f"see: codebatch changes --batch {id_}",
                )
            )
        resume = f"codebatch resume --batch {id_}"
        if not state.is_final:
            return BatchIncomplete(f"batch {id_} has not ended", hint=f"resume it with: {resume}")
        if state is BatchState.CANCELLED:
            return BatchCancelled(f"batch {id_} was cancelled", hint=f"resume it with: {resume}")
        if self.standing.is_expired:
            seconds = human_seconds(self.standing.work.timeout_seconds or 0.0)
            hint = f"resume it with a new time limit: {resume}"
            return BatchIncomplete(f"batch {id_} reached its time limit of {seconds}", hint=hint)
        if caps := self.standing.caps:
            texts = ", ".join(cap_text(cap, self.standing.work.limits_or_none.cost_unit) for cap in caps)
            return BatchIncomplete(f"batch {id_} starts no more tasks: {texts}", hint=raise_hint(caps[0], id_))
        if blocked := self.commands_in(CommandState.BLOCKED):
            message = f"{count_text(len(blocked), 'task')} of batch {id_} {'waits' if len(blocked) == 1 else 'wait'}"
            hint = f"see: codebatch work questions --batch {id_}; answer them, then: {resume}"
            return BatchBlocked(f"{message} for an answer: {first_command_names(blocked)}", hint=hint)
        failed = self.commands_in(CommandState.FAILED)
        message = f"{count_text(len(failed), 'task')} of batch {id_} failed: {first_command_names(failed)}"
        if failed and all(command.is_decided for command in failed):
            retry_command = f"codebatch work retry {failed[0].id} --batch {id_}"
            return BatchIncomplete(message, hint=f"an answer marked the task as failed; retry it with: {retry_command}")
        hint = f"see the output with: codebatch work log --batch {id_}; then: {resume}"
        skipped = [command for command in self.commands_in(CommandState.SKIPPED) if command.cause == command.id]
        if skipped and not failed:
            message = f"{count_text(len(skipped), 'task')} of batch {id_} skipped: {first_command_names(skipped)}"
            return BatchIncomplete(message, hint=f"run it with: codebatch work retry {skipped[0].id} --batch {id_}")
        return BatchIncomplete(message if failed else f"some tasks of batch {id_} are not done", hint=hint)


def first_command_names(commands: list[CommandStatus]) -> str:
    """Return the names of the first NAMED_MAX commands, followed by the number of further commands."""
    more = f" and {len(commands) - TASKS_NAMED_MAX:,} more" if len(commands) > TASKS_NAMED_MAX else ""
    return ", ".join(command.id for command in commands[:TASKS_NAMED_MAX]) + more


def load_work_batch(store: StoreDir, batch: BatchDir) -> WorkBatch:
    """Read the status of a work batch. Raises WrongBatchKind, StoreCorrupt."""
    check_kind(batch, "work")
    return WorkBatch(store=store, batch=batch, standing=read_work_status(store, batch))


def iter_work_batches(store: StoreDir, note: NoteCallback = ignore_note) -> Iterator[WorkBatch]:
    """Yield all readable work batches, the latest first. A damaged batch is skipped, with a note."""
    for batch in iter_batches(store, note, kind="work"):
        try:
            yield load_work_batch(store, batch)
        except (BatchRemoved, StoreError) as error:
            note(f"{batch.id} skipped: {error.message}")


def refuse_unnamed_batch(batch: BatchDir) -> NoReturn:
    """Raise the InvalidInput for a user who named a store but not the batch to resume.

    In a named store, commands run again only if the user also names their batch.
    """
    raise InvalidInput(
        f"batch {batch.id} runs commands, so it is resumed only if you give its id",
        hint=f"resume it with: codebatch resume --batch {batch.id}",
    )
