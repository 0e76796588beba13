"""What happens to a session, and what it asks for: two closed unions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

from codebatch.model.outcome import Commit, Register, Unit
from codebatch.model.record import FailureReason
from codebatch.model.shard import ShardId

WorkerId = NewType("WorkerId", int)
UnitKey = tuple[ShardId, int]
"""A unit's identity for leases: its shard and first item. Its end may shrink while it runs."""


@dataclass(frozen=True, slots=True)
class Started:
    """The session begins; leases of other live processes are known by now."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker can take its first unit."""

    worker: WorkerId


@dataclass(frozen=True, slots=True)
class Refused:
    """A worker could not lease its unit: epoch `epoch` of it was taken by another process."""

    worker: WorkerId
    epoch: int


@dataclass(frozen=True, slots=True)
class Finished:
    """A worker has no unit any more; its commits were reported before. A worn one must be replaced."""

    worker: WorkerId
    is_worn: bool = False


@dataclass(frozen=True, slots=True)
class Committed:
    """Outcomes became durable, by whomever, or names were taken by bytes that say nothing.

    What one look at the disk finds is one event.
    """

    commits: tuple[Commit, ...]
    unreadable: tuple[Register, ...] = ()


@dataclass(frozen=True, slots=True)
class Lost:
    """A worker is dead. `items` are what it worked on, shard-relative, and `task` is what at; None: it is not known."""

    worker: WorkerId
    items: tuple[int, int] | None
    reason: FailureReason
    is_from_outside: bool = False
    task: str | None = None


@dataclass(frozen=True, slots=True)
class Released:
    """The holder of a foreign unit is dead or stuck; `epoch` was its last."""

    key: UnitKey
    epoch: int


@dataclass(frozen=True, slots=True)
class Surveyed:
    """The item that a worker is at, or would begin next; its unit's end where no item is left to begin."""

    worker: WorkerId
    position: int


@dataclass(frozen=True, slots=True)
class DrainRequested:
    """Begin nothing new; units that run may finish their item and commit."""


Event = Started | Ready | Refused | Finished | Committed | Lost | Released | Surveyed | DrainRequested


@dataclass(frozen=True, slots=True)
class Spawn:
    """Start a worker."""


@dataclass(frozen=True, slots=True)
class Assign:
    """Give a unit to an idle worker, to be leased under this epoch."""

    worker: WorkerId
    unit: Unit
    epoch: int


@dataclass(frozen=True, slots=True)
class Survey:
    """Tell where a running worker stands, as Surveyed."""

    worker: WorkerId


@dataclass(frozen=True, slots=True)
class Shrink:
    """Tell a running worker that its unit ends earlier now."""

    worker: WorkerId
    end: int


@dataclass(frozen=True, slots=True)
class Fail:
    """Commit `failed` outcomes for one item, under this coordinator's own name, then report them as Committed."""

    shard: ShardId
    item: int
    tasks: tuple[str, ...]
    round: int
    reason: FailureReason


@dataclass(frozen=True, slots=True)
class Retire:
    """Tell an idle worker to end."""

    worker: WorkerId


@dataclass(frozen=True, slots=True)
class Complete:
    """Every item has an outcome of every task: merge."""


@dataclass(frozen=True, slots=True)
class Drained:
    """Nothing runs any more and work is left."""


@dataclass(frozen=True, slots=True)
class Break:
    """Give up: `deaths` workers died in a row with no commit between."""

    deaths: int


Action = Spawn | Assign | Survey | Shrink | Fail | Retire | Complete | Drained | Break
