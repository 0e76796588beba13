"""Actions that a session requests from its event loop. `SessionAction` is the union of all."""

from __future__ import annotations

import msgspec

from codebatch.model.outcome import WorkUnit
from codebatch.model.record import FailureReason
from codebatch.model.shard import ShardId
from codebatch.scheduling.events import WorkerId


class SpawnWorker(msgspec.Struct, frozen=True):
    """Start a worker."""


class AssignUnit(msgspec.Struct, frozen=True):
    """Assign a unit to an idle worker, which must lease it under this epoch."""

    worker: WorkerId
    unit: WorkUnit
    epoch: int


class SurveyWorker(msgspec.Struct, frozen=True):
    """Ask a running worker for its position: the item that it is executing.

    The answer arrives as the event Surveyed.
    """

    worker: WorkerId


class ShrinkUnit(msgspec.Struct, frozen=True):
    """Shorten the unit of a running worker. `end` is the new end of the unit."""

    worker: WorkerId
    end: int


class CommitFailure(msgspec.Struct, frozen=True):
    """Commit `failed` outcomes of `tasks` for one item.

    The coordinator itself does this; the result arrives as OutcomesCommitted.
    """

    shard: ShardId
    item: int
    tasks: tuple[str, ...]
    round: int
    reason: FailureReason


class RetireWorker(msgspec.Struct, frozen=True):
    """Stop an idle worker."""

    worker: WorkerId


class CompleteSession(msgspec.Struct, frozen=True):
    """End the session: every item has an outcome of every task, so the outcomes can be merged."""


class EndDrained(msgspec.Struct, frozen=True):
    """End the session early: no worker runs, and work is left."""


class EndBroken(msgspec.Struct, frozen=True):
    """End the session because the machine fails: `deaths` workers died in a row without a commit."""

    deaths: int


SessionAction = (
    SpawnWorker
    | AssignUnit
    | SurveyWorker
    | ShrinkUnit
    | CommitFailure
    | RetireWorker
    | CompleteSession
    | EndDrained
    | EndBroken
)
