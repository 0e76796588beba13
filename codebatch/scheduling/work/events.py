"""Events that a conductor reacts to and actions that it requests: two unions. Commands are items of the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from codebatch.model.digest import Digest
from codebatch.model.outcome import CommandReport, OutcomeType
from codebatch.model.record import CommandReason
from codebatch.model.work.request import Request, Stop
from codebatch.scheduling.actions import CompleteSession, EndBroken, EndDrained, RetireWorker, SpawnWorker
from codebatch.scheduling.events import DrainRequested, LeaseRefused, SessionStarted, UnitDone, WorkerId, WorkerIdle


class AttemptOutcome(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The outcome of an attempt: its type, its round, and the epoch of its lease.

    - `question`: the question with which the command ended, or empty.
    - `said`: the command's report (CommandReport). It has no effect on scheduling.
    - `until_ns`: the time (wall clock) until which a command waits if the reason is `limited`.
    - `wait_seconds`: the time from the end of the attempt until then.
    - `is_final`: the failure is not retried.
    - `changes`: the digest of the change set of an attempt in a tree of its own, or empty.
    - `unrecorded`: the number of paths with work that this change set does not record.
    - `outputs`, `inputs`: as in TaskOutcome.
    - `notes`: the limit that ended the attempt, and what was ignored, cut or replaced by a default.
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
    wait_seconds: float = 0.0
    is_final: bool = False
    changes: Digest = Digest("")
    unrecorded: int = 0
    outputs: Digest = Digest("")
    inputs: Digest = Digest("")
    notes: tuple[str, ...] = ()


class OutcomesConcluded(msgspec.Struct, frozen=True):
    """Durable outcomes of attempts, committed by any process, and unreadable registers as (item, round)."""

    conclusions: Sequence[AttemptOutcome]
    unreadable: Sequence[tuple[int, int]] = ()


class NextStarted(msgspec.Struct, frozen=True):
    """A worker's command has ended, and the worker has started the next one from its queue."""

    worker: WorkerId


class QueuedReturned(msgspec.Struct, frozen=True):
    """A worker returned the last `count` commands of its queue.

    Its current command takes long, or the coordinator recalled the queue.
    """

    worker: WorkerId
    count: int


class WorkerDied(msgspec.Struct, frozen=True):
    """A worker and the processes of its command are dead. The outcomes were read again after its death.

    `leased_by` is the owner of the lease of the command: this worker (`it`), `another` one (possibly of an earlier
    coordinator), or `nobody`.
    """

    worker: WorkerId
    leased_by: Literal["nobody", "it", "another"]


class CommandReleased(msgspec.Struct, frozen=True):
    """The worker of a foreign command and its processes are dead. `epoch` is the last epoch of its lease."""

    item: int
    epoch: int


class RequestRead(msgspec.Struct, frozen=True):
    """The next request of the batch was read."""

    request: Request


class SignalReceived(msgspec.Struct, frozen=True):
    """The coordinator received a signal. If `ends`, running attempts are terminated. Otherwise they may finish."""

    name: str
    ends: bool


ANY_ITEM = -1
"""A value used in place of an item. It represents the item that starts next."""
BATCH_TIME_LIMIT_ITEM = -2
"""A value used in place of an item. It represents the time limit of the whole batch."""


class WaitEnded(msgspec.Struct, frozen=True):
    """The timer of a Wake has expired.

    It was set for the waiting time before an attempt of an item, for the time between two starts (ANY), or for the time
    limit of the batch (BATCH_TIME_LIMIT).
    """

    item: int
    round: int


class QuestionAsked(msgspec.Struct, frozen=True):
    """The `number`th question of a running attempt is durable. The attempt continues to run."""

    item: int
    round: int
    epoch: int
    number: int
    question: Digest


class ConsultationEnded(msgspec.Struct, frozen=True):
    """The consultation of rules or a program about a question has ended.

    If it has not answered the question, people must answer.
    """

    question: Digest


class ClockRead(msgspec.Struct, frozen=True):
    """The clock closed or opened pools, or has passed the deadline. The coordinator reports each change.

    `closed` maps the pools that the hours close to their opening times (ns). SLOTS_POOL has the hours of the list.
    """

    closed: Mapping[str, int] = msgspec.field(default_factory=dict)
    is_past_deadline: bool = False


CommandEvent = (
    SessionStarted
    | WorkerIdle
    | LeaseRefused
    | UnitDone
    | NextStarted
    | QueuedReturned
    | OutcomesConcluded
    | WorkerDied
    | CommandReleased
    | RequestRead
    | WaitEnded
    | QuestionAsked
    | ConsultationEnded
    | SignalReceived
    | DrainRequested
    | ClockRead
)


class StartCommand(msgspec.Struct, frozen=True):
    """Start a command in an idle worker. The worker must lease it under `epoch`.

    - `requests`: the number of requests that were known at this decision.
    - `failed_tries`: the number of failed tries since a request last opened the command.
    - `then`: further starts, which are queued at the worker behind this one. When the worker begins one of them,
      NextStarted reports it.
    """

    worker: WorkerId
    item: int
    round: int
    epoch: int
    requests: int
    failed_tries: int
    then: tuple[StartCommand, ...] = ()


class CommandAdvanced(msgspec.Struct, frozen=True):
    """Note that a worker has begun a command from its queue. No message to the worker is needed."""

    start: StartCommand


class RecallQueued(msgspec.Struct, frozen=True):
    """Take back the commands in a worker's queue that it has not begun."""

    worker: WorkerId


class CommitInterrupted(msgspec.Struct, frozen=True):
    """Commit the outcome of an interrupted attempt, in this coordinator. The result arrives as Concluded.

    `epoch` is the epoch of the interrupted attempt.
    """

    item: int
    round: int
    type: Literal["failed", "blocked"]
    epoch: int


class TerminateCommand(msgspec.Struct, frozen=True):
    """Terminate the command of a worker because of a Cancel, a Stop or a Skip.

    If `task` is set, terminate only if the worker runs this command.
    """

    worker: WorkerId
    grace_seconds: float | None
    task: str = ""
    why: Literal["cancelled", "stopped"] = "cancelled"


class MakeRequest(msgspec.Struct, frozen=True):
    """Append a request to the batch, durably. It then arrives as Requested.

    The request may name only attempts that have a lease. So no later attempt can have the same epoch as a named
    attempt.
    """

    body: Stop


class DeliverAnswer(msgspec.Struct, frozen=True):
    """Deliver an answer to the running command of a worker. The command has taken its slots again."""

    worker: WorkerId


class SetTimer(msgspec.Struct, frozen=True):
    """Set a timer, which ends with the event WaitEnded after `seconds`.

    It is for the attempt of an item in a round, for the next start (ANY), or for the time limit of the batch
    (BATCH_TIME_LIMIT). If `until_ns` is set, the timer ends once the wall clock has passed this time.
    """

    item: int
    round: int
    seconds: float
    until_ns: int = 0


class ConsultRules(msgspec.Struct, frozen=True):
    """Consult the answering rules or the answering program about a question.

    The end of the consultation arrives as Consulted.
    """

    item: int
    question: Digest


CommandAction = (
    SpawnWorker
    | StartCommand
    | CommandAdvanced
    | RecallQueued
    | CommitInterrupted
    | TerminateCommand
    | MakeRequest
    | DeliverAnswer
    | SetTimer
    | ConsultRules
    | RetireWorker
    | CompleteSession
    | EndDrained
    | EndBroken
)
