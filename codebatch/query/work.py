"""Where a work batch stands, derived from what is on disk as whoever conducts it would (SPEC.md "Work batches")."""

from __future__ import annotations

import msgspec

from codebatch.engine.lifecycle import BatchState, CommandState
from codebatch.model.command import CommandId
from codebatch.model.outcome import HolderId
from codebatch.model.record import CommandReason
from codebatch.model.work import Work
from codebatch.store.holders import HolderFile


class CommandStanding(msgspec.Struct, frozen=True, kw_only=True):
    """Where a command stands.

    `round` is the highest that it had, or has while it runs; 0 where it never began. `reason` and `exit_status` are of
    the last that ended. `cause` is the command for whose sake it is SKIPPED. `question` is the digest of what it waits
    for an answer to. `log` is the name of the last attempt's log, in the batch's `logs/`, empty where it never began.
    """

    id: CommandId
    item: int
    state: CommandState
    round: int = 0
    epoch: int = 0
    reason: CommandReason | None = None
    exit_status: int | None = None
    cause: CommandId | None = None
    question: str = ""
    log: str = ""
    holder: HolderId | None = None


class WorkStanding(msgspec.Struct, frozen=True, kw_only=True):
    """Where a work batch stands. `commands` are in the order of the file.

    `coordinator` is who conducts it now, `workers` are those at work, be it that nobody conducts them any more.
    """

    state: BatchState
    work: Work
    commands: tuple[CommandStanding, ...]
    coordinator: HolderFile | None
    workers: tuple[HolderFile, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many commands are in each state; states of none are left out."""
        counts: dict[str, int] = {}
        for command in self.commands:
            counts[command.state.value] = counts.get(command.state.value, 0) + 1
        return counts

    @property
    def is_stalled(self) -> bool:
        """Whether work is open that nobody does: `resume` continues it."""
        return self.state is BatchState.RUNNING and self.coordinator is None and not self.workers
