"""What a session asks for: a closed union."""

from __future__ import annotations

import msgspec

from codebatch.model.outcome import Unit
from codebatch.model.record import FailureReason
from codebatch.model.shard import ShardId
from codebatch.scheduling.events import WorkerId


class Spawn(msgspec.Struct, frozen=True):
    """Start a worker."""


class AssignUnit(msgspec.Struct, frozen=True):
    """Give a unit to an idle worker, to be leased under this epoch."""

    worker: WorkerId
    unit: Unit
    epoch: int


class SurveyWorker(msgspec.Struct, frozen=True):
    """Tell where a running worker stands, as Surveyed."""

    worker: WorkerId


class ShrinkUnit(msgspec.Struct, frozen=True):
    """Tell a running worker that its unit ends earlier now."""

    worker: WorkerId
    end: int


class Fail(msgspec.Struct, frozen=True):
    """Commit `failed` outcomes for one item, under this coordinator's own name, then report them as Committed."""

    shard: ShardId
    item: int
    tasks: tuple[str, ...]
    round: int
    reason: FailureReason


class Retire(msgspec.Struct, frozen=True):
    """Tell an idle worker to end."""

    worker: WorkerId


class Complete(msgspec.Struct, frozen=True):
    """Every item has an outcome of every task: merge."""


class Drained(msgspec.Struct, frozen=True):
    """Nothing runs any more and work is left."""


class Break(msgspec.Struct, frozen=True):
    """Give up: `deaths` workers died in a row with no commit between."""

    deaths: int


Action = Spawn | AssignUnit | SurveyWorker | ShrinkUnit | Fail | Retire | Complete | Drained | Break
