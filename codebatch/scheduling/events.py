"""What happens to a session: a closed union."""

from __future__ import annotations

from typing import NewType

import msgspec

from codebatch.model.outcome import Commit, Register
from codebatch.model.record import FailureReason
from codebatch.model.shard import ShardId

WorkerId = NewType("WorkerId", int)
UnitKey = tuple[ShardId, int]
"""A unit's identity for leases: its shard and first item. Its end may shrink while it runs."""


class SessionStarted(msgspec.Struct, frozen=True):
    """The session begins; leases of other live processes are known by now."""


class Ready(msgspec.Struct, frozen=True):
    """A worker can take its first unit."""

    worker: WorkerId


class LeaseRefused(msgspec.Struct, frozen=True):
    """A worker could not lease its unit: epoch `epoch` of it was taken by another process."""

    worker: WorkerId
    epoch: int


class UnitDone(msgspec.Struct, frozen=True):
    """A worker has no unit any more; its commits were reported before. A worn one must be replaced."""

    worker: WorkerId
    is_worn: bool = False


class OutcomesCommitted(msgspec.Struct, frozen=True):
    """Outcomes became durable, by whomever, or names were taken by bytes that say nothing.

    What one look at the disk finds is one event.
    """

    commits: tuple[Commit, ...]
    unreadable: tuple[Register, ...] = ()


class WorkerLost(msgspec.Struct, frozen=True):
    """A worker is dead. `items` are what it worked on, shard-relative, and `task` is what at; None: it is not known."""

    worker: WorkerId
    items: tuple[int, int] | None
    reason: FailureReason
    is_from_outside: bool = False
    task: str | None = None


class UnitReleased(msgspec.Struct, frozen=True):
    """The holder of a foreign unit is dead or stuck; `epoch` was its last."""

    key: UnitKey
    epoch: int


class Surveyed(msgspec.Struct, frozen=True):
    """The item that a worker is at, or would begin next; its unit's end where no item is left to begin."""

    worker: WorkerId
    position: int


class ProgressReport(msgspec.Struct, frozen=True):
    """Positions of the running workers, as in Surveyed, `seconds` after the last report or after Started.

    A worker that is still setting up its unit has no position.
    """

    seconds: float
    positions: tuple[tuple[WorkerId, int], ...]


class DrainRequested(msgspec.Struct, frozen=True):
    """Begin nothing new; units that run may finish their item and commit."""


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
