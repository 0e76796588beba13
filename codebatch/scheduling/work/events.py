"""Events that a conductor handles and actions that it requests: two closed unions. Commands are items of the plan."""

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
    """The outcome of an attempt: its round, and the epoch of its lease.

    `question` is the command's own question at its end, or empty. `said` is the command's report and has no effect on
    scheduling. A `limited` attempt waits until `until_ns` (wall clock). A failure with `is_final` is not retried.
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
    """Attempts ended, durably, in any process; or registers (item, round) with invalid content were found."""

    conclusions: Sequence[Conclusion]
    unreadable: Sequence[tuple[int, int]] = ()


class NextStarted(msgspec.Struct, frozen=True):
    """A worker has ended its command and begun the next command that was queued at it."""

    worker: WorkerId


class QueuedReturned(msgspec.Struct, frozen=True):
    """A worker returns the last `count` commands queued at it: its command takes long, or it was asked to."""

    worker: WorkerId
    count: int


class WorkerDied(msgspec.Struct, frozen=True):
    """A worker and the processes of its command are dead. Registers were read since.

    `leased_by` is the holder of the lease that the worker was to take; `another` may be a worker of an earlier
    coordinator.
    """

    worker: WorkerId
    leased_by: Literal["nobody", "it", "another"]


class CommandReleased(msgspec.Struct, frozen=True):
    """The worker of a foreign command and the command's processes are dead. `epoch` is the last epoch of the lease."""

    item: int
    epoch: int


class Requested(msgspec.Struct, frozen=True):
    """The next request of the batch."""

    request: Request


class Signalled(msgspec.Struct, frozen=True):
    """The coordinator received a signal. With `ends`, running attempts are terminated; otherwise they may finish."""

    name: str
    ends: bool


ANY = -1
"""In place of an item: whichever item starts next."""
WHOLE = -2
"""In place of an item: the whole batch, for its time limit."""


class Due(msgspec.Struct, frozen=True):
    """The end of a Wake: the wait before an attempt of an item or before ANY start, or the time limit of WHOLE."""

    item: int
    round: int


class QuestionAsked(msgspec.Struct, frozen=True):
    """A running attempt asks its `number`th question, durably, and continues to run."""

    item: int
    round: int
    epoch: int
    number: int
    question: Digest


class Consulted(msgspec.Struct, frozen=True):
    """A question has been consulted and is now left to people. An automatic answer was requested before."""

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
    """Assign a command to an idle worker, which must lease it under `epoch`, with `requests` requests known.

    `tried` is the number of failed attempts since a request last opened the command. `then` are starts queued behind
    it; each begins when NextStarted reports it.
    """

    worker: WorkerId
    item: int
    round: int
    epoch: int
    requests: int
    tried: int
    then: tuple[StartCommand, ...] = ()


class CommandAdvanced(msgspec.Struct, frozen=True):
    """Record that a worker has begun a queued command. The action needs no message."""

    start: StartCommand


class RecallQueued(msgspec.Struct, frozen=True):
    """Ask a worker to return queued commands that it has not begun."""

    worker: WorkerId


class Settle(msgspec.Struct, frozen=True):
    """Commit the outcome of an interrupted attempt with this `epoch`, in the name of this coordinator.

    Then report it as Concluded.
    """

    item: int
    round: int
    type: Literal["failed", "blocked"]
    epoch: int


class TerminateCommand(msgspec.Struct, frozen=True):
    """Ask a worker to terminate its command for a Cancel, for a Stop, or for a Skip if it runs `task`."""

    worker: WorkerId
    grace_seconds: float | None
    task: str = ""
    why: Literal["cancelled", "stopped"] = "cancelled"


class MakeRequest(msgspec.Struct, frozen=True):
    """Append a request to the batch, durably, then report it as Requested.

    The request may name only attempts with a lease: no other start can have the epoch of a lease.
    """

    body: Stop


class DeliverAnswer(msgspec.Struct, frozen=True):
    """Ask a worker to pass on the answer to its command. The command has its slots again."""

    worker: WorkerId


class Wake(msgspec.Struct, frozen=True):
    """Report Due after `seconds`, for the attempt of a round, for ANY or for WHOLE.

    If `until_ns` is set, report Due once the wall clock has passed it.
    """

    item: int
    round: int
    seconds: float
    until_ns: int = 0


class Consult(msgspec.Struct, frozen=True):
    """Consult the answering rules or program about a question, then report Consulted."""

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
