"""Events that a session handles, a closed union."""

from __future__ import annotations

from typing import NewType

import msgspec

from codebatch.model.outcome import Commit, Register
from codebatch.model.record import FailureReason
from codebatch.model.shard import ShardId

WorkerId = NewType("WorkerId", int)
UnitKey = tuple[ShardId, int]
"""The identity of a unit for leases: its shard and first item. The end may shrink while the unit runs."""


class SessionStarted(msgspec.Struct, frozen=True):
    """The start of the session. Leases of other live processes are known by now."""


class Ready(msgspec.Struct, frozen=True):
    """Readiness of a started worker for its first unit."""

    worker: WorkerId


class LeaseRefused(msgspec.Struct, frozen=True):
    """Refusal of the lease of a worker's unit, because another process has the lease with `epoch`."""

    worker: WorkerId
    epoch: int


class UnitDone(msgspec.Struct, frozen=True):
    """End of a worker's unit. Its commits were reported before. A worn worker must be replaced."""

    worker: WorkerId
    is_worn: bool = False


class OutcomesCommitted(msgspec.Struct, frozen=True):
    """Durable outcomes of any process, and registers with invalid content.

    One scan of the disk yields one event.
    """

    commits: tuple[Commit, ...]
    unreadable: tuple[Register, ...] = ()


class WorkerLost(msgspec.Struct, frozen=True):
    """The death of a worker. `items` and `task` are what it worked on, relative to the shard; None if unknown."""

    worker: WorkerId
    items: tuple[int, int] | None
    reason: FailureReason
    is_from_outside: bool = False
    task: str | None = None


class UnitReleased(msgspec.Struct, frozen=True):
    """Release of a foreign unit, whose holder is dead or stuck. `epoch` is the last epoch of its lease."""

    key: UnitKey
    epoch: int


class Surveyed(msgspec.Struct, frozen=True):
    """The current or next item of a worker; the end of its unit if no item is left to begin."""

    worker: WorkerId
    position: int


class ProgressReport(msgspec.Struct, frozen=True):
    """Positions of the running workers, as in Surveyed, `seconds` after the last report or after SessionStarted.

    A worker that is still setting up its unit has no position.
    """

    seconds: float
    positions: tuple[tuple[WorkerId, int], ...]


class DrainRequested(msgspec.Struct, frozen=True):
    """A request to begin nothing new. Running units may finish their item and commit."""


Event = (
    SessionStarted
    | Ready
    | LeaseRefused
    | UnitDone
    | OutcomesCommitted
    | WorkerLost
    | UnitReleased
    | Surveyed
    | ProgressReport
    | DrainRequested
)
