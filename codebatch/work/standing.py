"""A work batch as it stands, which of them is meant, and what lacks where not all of it is done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

import msgspec

from codebatch.application import Note, ignore_note
from codebatch.engine.lifecycle import BatchState, CommandState
from codebatch.errors import (
    AmbiguousId,
    BatchBlocked,
    BatchCancelled,
    BatchIncomplete,
    CollectedMeanwhile,
    InvalidInput,
    StoreCorrupt,
    UnknownId,
)
from codebatch.model.quantities import count_of
from codebatch.query.work import CommandStanding, WorkStanding, work_standing
from codebatch.store import layout
from codebatch.store.batches import Batch, check_kind, iter_batches, resolve_batch
from codebatch.store.collection import is_held
from codebatch.store.store import Store

NAMED_MAX = 5
"""Of the commands, and of the batches, that a message names."""


class WorkBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A work batch, and where it stood when it was looked at."""

    store: Store
    batch: Batch
    standing: WorkStanding

    def of(self, *states: CommandState) -> list[CommandStanding]:
        """Its commands in some states, in the order of the file."""
        return [each for each in self.standing.commands if each.state in states]

    @property
    def ended_ns(self) -> int | None:
        """When the last of what was done in it was on disk, None where it is not over or nothing was done."""
        found = self.batch.files.stat(self.batch.root / layout.OUTCOMES)
        is_begun = any(command.round for command in self.standing.commands)
        return found.st_mtime_ns if found is not None and is_begun and self.standing.state.is_final else None

    @property
    def shortfall(self) -> BatchIncomplete | None:
        """What lacks of a batch that is done; None where nothing does."""
        state, id_ = self.standing.state, self.batch.id
        if state is BatchState.COMPLETED:
            return None
        resume = f"codebatch resume --batch {id_}"
        if not state.is_final:
            return BatchIncomplete(f"batch {id_} is not at its end", hint=f"go on with: {resume}")
        if state is BatchState.CANCELLED:
            return BatchCancelled(f"batch {id_} was cancelled", hint=f"go on all the same with: {resume}")
        if blocked := self.of(CommandState.BLOCKED):
            told = f"{count_of(len(blocked), 'task')} of batch {id_} {'waits' if len(blocked) == 1 else 'wait'}"
            hint = f"see: codebatch work questions --batch {id_}; answer; then: {resume}"
            return BatchBlocked(f"{told} for an answer: {names_of(blocked)}", hint=hint)
        failed = self.of(CommandState.FAILED)
        told = f"{count_of(len(failed), 'task')} of batch {id_} failed: {names_of(failed)}"
        hint = f"see why with: codebatch work log --batch {id_}; then: {resume}"
        return BatchIncomplete(told if failed else f"not all of batch {id_} was done", hint=hint)


def names_of(commands: list[CommandStanding]) -> str:
    """The first of some commands by name, and how many more there are."""
    more = f" and {len(commands) - NAMED_MAX:,} more" if len(commands) > NAMED_MAX else ""
    return ", ".join(each.id for each in commands[:NAMED_MAX]) + more


def look_at(store: Store, batch: Batch) -> WorkBatch:
    """Where a work batch stands now. Raises WrongKind, StoreCorrupt."""
    check_kind(batch, "work")
    return WorkBatch(store=store, batch=batch, standing=work_standing(store, batch))


def iter_work(store: Store, note: Note = ignore_note) -> Iterator[WorkBatch]:
    """Every work batch that can be read, latest first. A damaged one hides no other."""
    for batch in iter_batches(store, note, kind="work"):
        try:
            yield look_at(store, batch)
        except (CollectedMeanwhile, StoreCorrupt) as error:
            note(f"{batch.id} is passed over: {error.message}")


def refuse_unnamed(batch: Batch) -> NoReturn:
    """Raise InvalidInput: what a store that was named has last is run only where it is named too."""
    raise InvalidInput(
        f"the latest batch of the store, {batch.id}, runs commands, and the store was named",
        hint=f"say that it is meant: codebatch resume --batch {batch.id}",
    )


def resolve_live(store: Store, reference: str | None, note: Note = ignore_note) -> Batch:
    """The batch that is named; else the only one of commands that somebody is at work on.

    Raises as `resolve_batch` does, AmbiguousId where there are several, UnknownId where there is none.
    """
    if reference is not None:
        return resolve_batch(store, reference, note, kind="any")
    live = [batch for batch in iter_batches(store, note, kind="work") if is_held(batch)]
    if len(live) == 1:
        return live[0]
    hint = "name one with --batch; see: codebatch batch list --pipeline work --active"
    if not live:
        raise UnknownId("nobody is at work on a batch of commands", hint=hint)
    shown = ", ".join(batch.id for batch in live[:NAMED_MAX])
    raise AmbiguousId(f"{len(live)} batches of commands are at work: {shown}", hint=hint)
