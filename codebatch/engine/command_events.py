"""What happens to a conductor, and what it asks for: two closed unions. Commands are items: places in the plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from codebatch.engine.actions import Break, Complete, Drained, Retire, Spawn
from codebatch.engine.events import DrainRequested, Finished, Ready, Refused, Started, WorkerId
from codebatch.model.outcome import OutcomeType
from codebatch.model.record import CommandReason
from codebatch.model.request import Request


class Conclusion(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How an attempt ended: the outcome of a round, and the epoch of the lease that it was made under."""

    item: int
    round: int
    type: OutcomeType
    reason: CommandReason | None = None
    epoch: int
    exit_status: int | None = None


class Concluded(msgspec.Struct, frozen=True):
    """Attempts ended, durably, whoever made them; or names of rounds were taken by bytes that say nothing."""

    conclusions: Sequence[Conclusion]
    unreadable: Sequence[tuple[int, int]] = ()


class Lost(msgspec.Struct, frozen=True):
    """A worker is dead, and so is what it ran; registers were read since.

    `leased_by`: whose the lease is on disk that it was to take, that of a worker of an earlier coordinator perhaps.
    """

    worker: WorkerId
    leased_by: Literal["nobody", "it", "another"]


class Released(msgspec.Struct, frozen=True):
    """The holder of a foreign command is dead, and so is what it ran; `epoch` was its last."""

    item: int
    epoch: int


class Requested(msgspec.Struct, frozen=True):
    """Somebody made a request: the next one."""

    request: Request


CommandEvent = Started | Ready | Refused | Finished | Concluded | Lost | Released | Requested | DrainRequested


class Start(msgspec.Struct, frozen=True):
    """Give a command to an idle worker, to be leased under this epoch, with so many requests in mind."""

    worker: WorkerId
    item: int
    round: int
    epoch: int
    requests: int


class Settle(msgspec.Struct, frozen=True):
    """Commit, under this coordinator's own name, how an interrupted attempt ended, with the epoch that it judges.

    Then report it as Concluded.
    """

    item: int
    round: int
    type: Literal["failed", "blocked"]
    epoch: int


class Terminate(msgspec.Struct, frozen=True):
    """Have a worker end the command at hand for a Cancel."""

    worker: WorkerId
    grace_seconds: float | None


CommandAction = Spawn | Start | Settle | Terminate | Retire | Complete | Drained | Break
