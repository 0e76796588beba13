"""What happens to a conductor, and what it asks for: two closed unions. Commands are items: places in the plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from codebatch.model.digest import Digest
from codebatch.model.outcome import CommandReport, OutcomeType
from codebatch.model.record import CommandReason
from codebatch.model.work.request import Request, Stop
from codebatch.scheduling.actions import Break, Complete, Drained, Retire, Spawn
from codebatch.scheduling.events import DrainRequested, LeaseRefused, Ready, SessionStarted, UnitDone, WorkerId


class Conclusion(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How an attempt ended: the outcome of a round, and the epoch of the lease that it was made under.

    `question` is what the command ended with, empty where that is nothing of its own. `said` decides nothing. What is
    `limited` waits until `until_ns` (wall clock). A failure that `is_final` is not tried again.
    """

    item: int
    round: int
    type: OutcomeType
    reason: CommandReason | None = None
    epoch: int
    exit_status: int | None = None
    question: Digest = Digest("")
    said: CommandReport | None = None
    until_ns: int = 0
    is_final: bool = False


class Concluded(msgspec.Struct, frozen=True):
    """Attempts ended, durably, whoever made them; or names of rounds were taken by bytes that say nothing."""

    conclusions: Sequence[Conclusion]
    unreadable: Sequence[tuple[int, int]] = ()


class NextStarted(msgspec.Struct, frozen=True):
    """A worker is through with the command at hand, and has begun the next of those that it was given at once."""

    worker: WorkerId


class QueuedReturned(msgspec.Struct, frozen=True):
    """A worker takes long, or was told to end: the last `count` that it was given at once are not begun."""

    worker: WorkerId
    count: int


class WorkerDied(msgspec.Struct, frozen=True):
    """A worker is dead, and so is what it ran; registers were read since.

    `leased_by`: whose the lease is on disk that it was to take, that of a worker of an earlier coordinator perhaps.
    """

    worker: WorkerId
    leased_by: Literal["nobody", "it", "another"]


class CommandReleased(msgspec.Struct, frozen=True):
    """The holder of a foreign command is dead, and so is what it ran; `epoch` was its last."""

    item: int
    epoch: int


class Requested(msgspec.Struct, frozen=True):
    """Somebody made a request: the next one."""

    request: Request


class Signalled(msgspec.Struct, frozen=True):
    """The coordinator received a signal. Attempts may run to their end, or the user wants them to `end` now."""

    name: str
    ends: bool


ANY = -1
"""In the place of an item: whichever starts next."""
WHOLE = -2
"""In the place of an item: the whole batch, whose time limit is a Wake."""


class Due(msgspec.Struct, frozen=True):
    """The time of a Wake is over: before an attempt of an item, before ANY starts, or that of the WHOLE batch."""

    item: int
    round: int


class QuestionAsked(msgspec.Struct, frozen=True):
    """The command of an attempt asks its `number`th question, durably, and goes on to run."""

    item: int
    round: int
    epoch: int
    number: int
    question: Digest


class Consulted(msgspec.Struct, frozen=True):
    """Nobody answers a question any more but people; what was answered to it was requested before."""

    question: Digest


CommandEvent = (
    SessionStarted
    | Ready
    | LeaseRefused
    | UnitDone
    | NextStarted
    | QueuedReturned
    | Concluded
    | WorkerDied
    | CommandReleased
    | Requested
    | Due
    | QuestionAsked
    | Consulted
    | Signalled
    | DrainRequested
)


class StartCommand(msgspec.Struct, frozen=True):
    """Give a command to an idle worker, to be leased under this epoch, with so many requests in mind.

    `tried` is how many attempts of it failed since a request last opened it. Those that are to follow `then` are not
    begun before a Went says so.
    """

    worker: WorkerId
    item: int
    round: int
    epoch: int
    requests: int
    tried: int
    then: tuple[StartCommand, ...] = ()


class CommandAdvanced(msgspec.Struct, frozen=True):
    """Nothing is to be done: a worker has begun what was to follow."""

    start: StartCommand


class RecallQueued(msgspec.Struct, frozen=True):
    """Have a worker return what it was given at once and has not begun."""

    worker: WorkerId


class Settle(msgspec.Struct, frozen=True):
    """Commit, under this coordinator's own name, how an interrupted attempt ended, with the epoch that it judges.

    Then report it as Concluded.
    """

    item: int
    round: int
    type: Literal["failed", "blocked"]
    epoch: int


class TerminateCommand(msgspec.Struct, frozen=True):
    """Have a worker end the command at hand for a Cancel, for a Stop, or for a Skip, where it is this one."""

    worker: WorkerId
    grace_seconds: float | None
    task: str = ""
    why: Literal["cancelled", "stopped"] = "cancelled"


class MakeRequest(msgspec.Struct, frozen=True):
    """Append a request to those of the batch, durably, then report it as Requested. It names leased attempts alone:
    no other start can have the epoch of one.
    """

    body: Stop


class DeliverAnswer(msgspec.Struct, frozen=True):
    """Have a worker hand over the answer to what its command asks: there is room for it to go on."""

    worker: WorkerId


class Wake(msgspec.Struct, frozen=True):
    """Say Due for the attempt of a round, for ANY or for the WHOLE, after so many seconds.

    If `until_ns` is set, say it once the wall clock has passed that.
    """

    item: int
    round: int
    seconds: float
    until_ns: int = 0


class Consult(msgspec.Struct, frozen=True):
    """Have a question answered that is not for people alone, then say Consulted."""

    item: int
    question: Digest


CommandAction = (
    Spawn
    | StartCommand
    | CommandAdvanced
    | RecallQueued
    | Settle
    | TerminateCommand
    | MakeRequest
    | DeliverAnswer
    | Wake
    | Consult
    | Retire
    | Complete
    | Drained
    | Break
)
