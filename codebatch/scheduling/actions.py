"""Actions that a session requests from its event loop, a closed union."""

from __future__ import annotations

import msgspec

from codebatch.model.outcome import Unit
from codebatch.model.record import FailureReason
from codebatch.model.shard import ShardId
from codebatch.scheduling.events import WorkerId


class Spawn(msgspec.Struct, frozen=True):
    """Start of a worker."""


class AssignUnit(msgspec.Struct, frozen=True):
    """Assignment of a unit to an idle worker, which must lease it under this epoch."""

    worker: WorkerId
    unit: Unit
    epoch: int


class SurveyWorker(msgspec.Struct, frozen=True):
    """Query of the position of a running worker, reported as Surveyed."""

    worker: WorkerId


class ShrinkUnit(msgspec.Struct, frozen=True):
    """Reduction of the unit of a running worker: its new end."""

    worker: WorkerId
    end: int


class Fail(msgspec.Struct, frozen=True):
    """Commit of `failed` outcomes for one item by this coordinator, to be reported as OutcomesCommitted."""

    shard: ShardId
    item: int
    tasks: tuple[str, ...]
    round: int
    reason: FailureReason


class Retire(msgspec.Struct, frozen=True):
    """Stop of an idle worker."""

    worker: WorkerId


class Complete(msgspec.Struct, frozen=True):
    """End of the session: every item has an outcome of every task and can be merged."""


class Drained(msgspec.Struct, frozen=True):
    """End of the session: nothing runs, and work is left."""


class Break(msgspec.Struct, frozen=True):
    """End of the session: `deaths` workers died in a row without a commit."""

    deaths: int


Action = Spawn | AssignUnit | SurveyWorker | ShrinkUnit | Fail | Retire | Complete | Drained | Break
