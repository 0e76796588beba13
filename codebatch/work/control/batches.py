"""A work batch as it stands, which of them is meant, and what lacks where not all of it is done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

import msgspec

from codebatch.errors import (
    AmbiguousId,
    BatchBlocked,
    BatchCancelled,
    BatchIncomplete,
    BatchRemoved,
    InvalidInput,
    StoreError,
    UnknownId,
)
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import count_of, human_seconds
from codebatch.operations import Note, ignore_note
from codebatch.query.status.work_status import CommandStatus, WorkBatchStatus, read_work_status
from codebatch.scheduling.lifecycle import BatchState, CommandState
from codebatch.scheduling.work.estimate import Eta
from codebatch.store import layout
from codebatch.store.batches.batches import BatchDir, BatchKind, check_kind, iter_batches
from codebatch.store.batches.holders import is_held
from codebatch.store.batches.resolution import iter_project_batches, resolve_batch
from codebatch.store.batches.store import StoreDir
from codebatch.system.clock import wall_ns

NAMED_MAX = 5
"""Of the commands, and of the batches, that a message names."""


class WorkBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch of a task list, and its state when it was read."""

    store: StoreDir
    batch: BatchDir
    standing: WorkBatchStatus

    def of(self, *states: CommandState) -> list[CommandStatus]:
        """Return the tasks of the batch in the given states, in the order of the file."""
        return [each for each in self.standing.commands if each.state in states]

    @property
    def ended_ns(self) -> int | None:
        """The time when the batch ended, in nanoseconds since 1970.

        None if the batch has not ended or no task ever started.
        """
        state = self.standing.state
        if not state.is_final or not any(command.round for command in self.standing.commands):
            return None
        names = (layout.OUTCOMES, *([layout.REQUESTS] if state is BatchState.CANCELLED else []))
        found = [self.batch.files.stat(self.batch.root / name) for name in names]
        return max((each.st_mtime_ns for each in found if each is not None), default=None)

    @property
    def eta(self) -> Eta | None:
        """The estimated remaining time, from the last report of the process that runs the batch. None if unknown."""
        if self.standing.coordinator is None:
            return None
        from codebatch.model.work.event import instant_ns  # 10 ms that a batch does without which nobody conducts
        from codebatch.store.work.events import EventReader

        told = EventReader(self.batch.files, self.batch.root).last_progress()
        if told is None or told.eta_seconds is None:
            return None
        past = max(0.0, (wall_ns() - instant_ns(told.at)) / 1e9)
        low, middle, high = (max(0.0, round(each - past, 1)) for each in told.eta_seconds)
        return Eta((low, middle, high), told.without_estimate)

    @property
    def shortfall(self) -> BatchIncomplete | None:
        """The error that describes what is missing, or None if all tasks are done."""
        state, id_ = self.standing.state, self.batch.id
        if state is BatchState.COMPLETED:
            return None
        resume = f"codebatch resume --batch {id_}"
        if not state.is_final:
            return BatchIncomplete(f"batch {id_} has not ended", hint=f"resume it with: {resume}")
        if state is BatchState.CANCELLED:
            return BatchCancelled(f"batch {id_} was cancelled", hint=f"resume it with: {resume}")
        if self.standing.is_expired:
            seconds = human_seconds(self.standing.work.timeout_seconds or 0.0)
            hint = f"resume it with a new time limit: {resume}"
            return BatchIncomplete(f"batch {id_} reached its time limit of {seconds}", hint=hint)
        if blocked := self.of(CommandState.BLOCKED):
            told = f"{count_of(len(blocked), 'task')} of batch {id_} {'waits' if len(blocked) == 1 else 'wait'}"
            hint = f"see: codebatch work questions --batch {id_}; answer them, then: {resume}"
            return BatchBlocked(f"{told} for an answer: {names_of(blocked)}", hint=hint)
        failed = self.of(CommandState.FAILED)
        told = f"{count_of(len(failed), 'task')} of batch {id_} failed: {names_of(failed)}"
        if failed and all(each.is_decided for each in failed):
            again = f"codebatch work retry {failed[0].id} --batch {id_}"
            return BatchIncomplete(told, hint=f"an answer marked the task as failed; retry it with: {again}")
        hint = f"see the output with: codebatch work log --batch {id_}; then: {resume}"
        return BatchIncomplete(told if failed else f"some tasks of batch {id_} are not done", hint=hint)


def names_of(commands: list[CommandStatus]) -> str:
    """The first of some commands by name, and how many more there are."""
    more = f" and {len(commands) - NAMED_MAX:,} more" if len(commands) > NAMED_MAX else ""
    return ", ".join(each.id for each in commands[:NAMED_MAX]) + more


def load_work_batch(store: StoreDir, batch: BatchDir, *, may_fork: bool = False) -> WorkBatch:
    """Where a work batch stands now; `may_fork` is as in `Attempts.read_all`. Raises WrongBatchKind, StoreCorrupt."""
    check_kind(batch, "work")
    return WorkBatch(store=store, batch=batch, standing=read_work_status(store, batch, may_fork=may_fork))


def iter_work(store: StoreDir, note: Note = ignore_note) -> Iterator[WorkBatch]:
    """Every work batch that can be read, latest first. A damaged one hides no other."""
    for batch in iter_batches(store, note, kind="work"):
        try:
            yield load_work_batch(store, batch)
        except (BatchRemoved, StoreError) as error:
            note(f"{batch.id} skipped: {error.message}")


def refuse_unnamed(batch: BatchDir) -> NoReturn:
    """Raise InvalidInput: what a store that was named has last is run only where it is named too."""
    raise InvalidInput(
        f"batch {batch.id} runs commands, so it is resumed only if you give its id",
        hint=f"resume it with: codebatch resume --batch {batch.id}",
    )


def resolve_live(
    store: StoreDir,
    reference: str | None,
    note: Note = ignore_note,
    *,
    kind: BatchKind = "work",
    else_latest: bool = False,
) -> BatchDir:
    """Return the batch that is named; else the only running one of a kind of the current project.

    If none is running and `else_latest` is set, return the latest of the project. Raises as `resolve_batch` does,
    AmbiguousId if several are running, UnknownId if none is.
    """
    if reference is not None:
        return resolve_batch(store, reference, note, kind="any")
    live = [batch for batch in iter_project_batches(store, note, kind=kind) if is_held(batch)]
    if len(live) == 1:
        return live[0]
    if not live and else_latest:
        return resolve_batch(store, None, note, kind=kind)
    of_commands, option = (" `work`", " --pipeline work") if kind == "work" else ("", "")
    hint = f"give one with --batch; see: codebatch batch list{option} --active"
    if not live:
        others = [batch for batch in iter_batches(store, kind=kind) if is_held(batch)]
        if others:
            shown = ", ".join(f"{each.id} ({display_path(each.about.project_root)})" for each in others[:NAMED_MAX])
            hint = f"running in other projects: {shown}; give one with --batch"
        raise UnknownId(f"no{of_commands} batch of this project is running", hint=hint)
    shown = ", ".join(batch.id for batch in live[:NAMED_MAX])
    raise AmbiguousId(f"{len(live)}{of_commands} batches of this project are running: {shown}", hint=hint)
