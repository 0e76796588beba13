"""Events that a session reacts to. `SessionEvent` is the union of all."""

from __future__ import annotations

from typing import NewType

import msgspec

from codebatch.model.outcome import Commit, OutcomeRegister
from codebatch.model.record import FailureReason
from codebatch.model.shard import ShardId

WorkerId = NewType("WorkerId", int)
UnitKey = tuple[ShardId, int]
"""The identity of a unit for leases: its shard and first item. The end may shrink while the unit runs."""


class SessionStarted(msgspec.Struct, frozen=True):
    """The session starts. The leases of other live processes were passed to the constructor of the session."""


class WorkerIdle(msgspec.Struct, frozen=True):
    """A started worker is ready for its first unit."""

    worker: WorkerId


class LeaseRefused(msgspec.Struct, frozen=True):
    """A worker could not lease its unit, because another process has the lease with `epoch`."""

    worker: WorkerId
    epoch: int


class UnitDone(msgspec.Struct, frozen=True):
    """A worker has finished its unit.

    The unit's commits were reported before. If `is_worn` is set, the worker must be replaced.
    """

    worker: WorkerId
    is_worn: bool = False


class OutcomesCommitted(msgspec.Struct, frozen=True):
    """Outcomes of any process became durable, or registers with invalid content were found.

    One scan of the disk yields one event.
    """

    commits: tuple[Commit, ...]
    unreadable: tuple[OutcomeRegister, ...] = ()


class WorkerLost(msgspec.Struct, frozen=True):
    """A worker died.

    `items` is the range of items, numbered in the shard, that it was executing, and `task` the task. None if unknown.
    """

    worker: WorkerId
    items: tuple[int, int] | None
    reason: FailureReason
    is_from_outside: bool = False
    task: str | None = None


class UnitReleased(msgspec.Struct, frozen=True):
    """The process that had leased a unit is dead or stuck, so the unit is free.

    `epoch` is the last epoch of its lease.
    """

    key: UnitKey
    epoch: int


class WorkerSurveyed(msgspec.Struct, frozen=True):
    """The position of a worker that was surveyed: its current or next item.

    If the worker will begin no more items, the position is the end of its unit.
    """

    worker: WorkerId
    position: int


class ProgressReport(msgspec.Struct, frozen=True):
    """The positions of the running workers, as in Surveyed. `seconds` is the time since the last report.

    For the first report, it is the time since SessionStarted. A worker that is still setting up its unit has no
    position.
    """

    seconds: float
    positions: tuple[tuple[WorkerId, int], ...]


class DrainRequested(msgspec.Struct, frozen=True):
    """A request to stop early: nothing new begins. Running units may finish their current item and commit."""


SessionEvent = (
    SessionStarted
    | WorkerIdle
    | LeaseRefused
    | UnitDone
    | OutcomesCommitted
    | WorkerLost
    | UnitReleased
    | WorkerSurveyed
    | ProgressReport
    | DrainRequested
)
