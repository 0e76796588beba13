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
    """Durable outcomes of attempts in any process, and registers (item, round) with invalid content."""

    conclusions: Sequence[Conclusion]
    unreadable: Sequence[tuple[int, int]] = ()


class NextStarted(msgspec.Struct, frozen=True):
    """Start of the next command that is queued at a worker, after the end of its previous command."""

    worker: WorkerId


class QueuedReturned(msgspec.Struct, frozen=True):
    """Return of the last `count` commands queued at a worker: its command takes long, or it was recalled."""

    worker: WorkerId
    count: int


class WorkerDied(msgspec.Struct, frozen=True):
    """Death of a worker and of the processes of its command. Registers were read since.

    `leased_by` is the holder of the lease that the worker was to take; `another` may be a worker of an earlier
    coordinator.
    """

    worker: WorkerId
    leased_by: Literal["nobody", "it", "another"]


class CommandReleased(msgspec.Struct, frozen=True):
    """Death of the worker of a foreign command and of its processes. `epoch` is the last epoch of the lease."""

    item: int
    epoch: int


class Requested(msgspec.Struct, frozen=True):
    """The next request of the batch."""

    request: Request


class Signalled(msgspec.Struct, frozen=True):
    """A signal to the coordinator. With `ends`, running attempts are terminated; otherwise they may finish."""

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
    """The `number`th question of a running attempt, durable. The attempt continues to run."""

    item: int
    round: int
    epoch: int
    number: int
    question: Digest


class Consulted(msgspec.Struct, frozen=True):
    """End of the consultation about a question. Without an automatic answer before it, people must answer."""

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
    """Assignment of a command to an idle worker, which must lease it under `epoch`, with `requests` known requests.

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
    """Notice that a worker has begun a queued command. It needs no message to the worker."""

    start: StartCommand


class RecallQueued(msgspec.Struct, frozen=True):
    """Recall of queued commands that a worker has not begun."""

    worker: WorkerId


class Settle(msgspec.Struct, frozen=True):
    """Commit of the outcome of an interrupted attempt with this `epoch`, to be reported as Concluded.

    This coordinator is the author of the commit.
    """

    item: int
    round: int
    type: Literal["failed", "blocked"]
    epoch: int


class TerminateCommand(msgspec.Struct, frozen=True):
    """Termination of the command of a worker for a Cancel, for a Stop, or for a Skip if it runs `task`."""

    worker: WorkerId
    grace_seconds: float | None
    task: str = ""
    why: Literal["cancelled", "stopped"] = "cancelled"


class MakeRequest(msgspec.Struct, frozen=True):
    """A request to append to the batch, durably, and then to report as Requested.

    The request may name only attempts with a lease: no other start can have the epoch of a lease.
    """

    body: Stop


class DeliverAnswer(msgspec.Struct, frozen=True):
    """Delivery of an answer to the command of a worker. The command has its slots again."""

    worker: WorkerId


class Wake(msgspec.Struct, frozen=True):
    """A timer of `seconds` that reports Due for the attempt of a round, for ANY or for WHOLE.

    If `until_ns` is set, it reports Due once the wall clock has passed it.
    """

    item: int
    round: int
    seconds: float
    until_ns: int = 0


class Consult(msgspec.Struct, frozen=True):
    """Consultation of the answering rules or program about a question, to be reported as Consulted."""

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
