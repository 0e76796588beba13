"""What is told of a batch while it runs: one line of a stream an event (SPEC.md "Events"). Nothing is decided by them.

The stream of a work batch is written by who conducts it, a file for each of its leases; who looks at an analysis makes
up a short one of what stands on disk.
"""

from __future__ import annotations

import datetime
import functools
import re
from typing import Literal, NamedTuple

import msgspec

from codebatch.model.document import Document

EVENT_FORMAT = 1
_CURSOR = re.compile(r"([0-9]{1,9})\.([0-9]{1,12})\Z", re.ASCII)


class Cursor(NamedTuple):
    """A place in the stream of a batch: behind the event of that number, in the epoch of who told it. They sort."""

    epoch: int
    seq: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.seq}"


BEGINNING = Cursor(0, 0)


def parse_cursor(text: str) -> Cursor | None:
    """The place that a text names; None where it names none."""
    match = _CURSOR.match(text)
    return Cursor(int(match[1]), int(match[2])) if match else None


class EventHead(Document, frozen=True, kw_only=True):
    """What each has: its place, `seq` within the epoch from 1; `at`, wall time in UTC to the millisecond (RFC 3339);
    and how many tasks were in each state then. Of an analysis counted are pairs of a file and a task.
    """

    format: int = EVENT_FORMAT
    cursor: str
    seq: int
    at: str
    batch_id: str
    counts: dict[str, int]

    @property
    def place(self) -> Cursor:
        """Its cursor."""
        return parse_cursor(self.cursor) or BEGINNING


class BatchEvent(EventHead, frozen=True, kw_only=True, tag_field="event", tag="BATCH"):
    """Base of the events."""


class TaskEvent(BatchEvent, frozen=True, kw_only=True, tag="BATCH_TASK"):
    """What each has of a task. `round` counts its attempts, `try` those since it was last opened by a request."""

    task: str
    title: str
    round: int
    try_: int = msgspec.field(name="try")
    tries_max: int


class BatchStarted(BatchEvent, frozen=True, kw_only=True, tag="BATCH_STARTED"):
    """Somebody conducts the batch, as the first. `requests` were made before."""

    source: str
    strategy: str
    max_parallel: int
    on_failure: str
    task_count: int
    task_ids: tuple[str, ...]
    edges: dict[str, int]
    requests: int = 0


class BatchResumed(BatchEvent, frozen=True, kw_only=True, tag="BATCH_RESUMED"):
    """Somebody conducts it again, after the last one was killed, drained, or had come to an end and was asked for more.

    Since then requests `reopened` tasks; `adopted` run under workers of an earlier one.
    """

    after: Literal["kill", "drain", "request"]
    reopened: tuple[str, ...]
    adopted: tuple[str, ...]
    requests: int = 0


class TaskQueued(TaskEvent, frozen=True, kw_only=True, tag="BATCH_TASK_QUEUED"):
    """It may start, once an attempt. `position`: so many may, this one among them."""

    position: int


class TaskStarted(TaskEvent, frozen=True, kw_only=True, tag="BATCH_TASK_STARTED"):
    """It was given to a worker, a holder and its process. `log` is a name in `logs/`."""

    worker: str
    pid: int
    log: str
    estimate_seconds: float | None = None


class TaskAdopted(TaskEvent, frozen=True, kw_only=True, tag="BATCH_TASK_ADOPTED"):
    """It was found running. `pid` is its worker's, `since` when it was told to have started; null: not known."""

    pid: int | None = None
    since: str | None = None


class TaskCompleted(TaskEvent, frozen=True, kw_only=True, tag="BATCH_TASK_COMPLETED"):
    """It is done; `marked_done`: it counts as that for a request. What is not known of it is null."""

    seconds: float | None = None
    cpu_seconds: float | None = None
    memory_peak_bytes: int | None = None
    exit_status: int | None = None
    marked_done: bool = False


class _Unsuccessful(TaskEvent, frozen=True, kw_only=True, tag="BATCH_TASK_UNSUCCESSFUL"):
    """Base. `signal` names what ended it, `log_tail` are the last lines that it printed."""

    reason: str | None = None
    exit_status: int | None = None
    signal: str = ""
    seconds: float | None = None
    log_tail: tuple[str, ...] = ()


class TaskRetrying(_Unsuccessful, frozen=True, kw_only=True, tag="BATCH_TASK_RETRYING"):
    """It failed, and is tried again. A rate limit (reason `limited`) uses up no try: the task waits `until` then, and
    nothing else that takes of its `pools` starts before.
    """

    wait_seconds: float | None = None
    until: str | None = None
    pools: tuple[str, ...] = ()


class TaskFailed(_Unsuccessful, frozen=True, kw_only=True, tag="BATCH_TASK_FAILED"):
    """It failed. Reason `answer`: it counts as that for a request."""


class AskedQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What a task waits for an answer to."""

    digest: str
    text: str
    choices: tuple[str, ...] = ()
    human: bool = False


class TaskBlocked(TaskEvent, frozen=True, kw_only=True, tag="BATCH_TASK_BLOCKED"):
    """It waits for an answer, ended; or, where `is_live`, while it runs."""

    question: AskedQuestion
    is_live: bool = False


class TaskAnswered(TaskEvent, frozen=True, kw_only=True, tag="BATCH_TASK_ANSWERED"):
    """Somebody answered, by the request of that number."""

    by: str
    text: str
    request: int


class TaskSkipped(TaskEvent, frozen=True, kw_only=True, tag="BATCH_TASK_SKIPPED"):
    """It is not run, for the sake of another task, or of a `request`."""

    cause: str
    reason: str


class TaskCancelled(TaskEvent, frozen=True, kw_only=True, tag="BATCH_TASK_CANCELLED"):
    """Its attempt was ended for a request."""

    seconds: float | None = None


class TaskInterrupted(TaskEvent, frozen=True, kw_only=True, tag="BATCH_TASK_INTERRUPTED"):
    """Its worker died, or the machine did: that of the lease `epoch`.

    `next_action` follows: `none` where it is not to run.
    """

    epoch: int
    next_action: Literal["restart", "fail", "ask", "none"]


class TaskStopped(TaskEvent, frozen=True, kw_only=True, tag="BATCH_TASK_STOPPED"):
    """Its attempt, of the lease `epoch`, was ended before its time. It failed by nothing, and uses up no try.

    `cause`: a signal to the coordinator, the time limit of the batch, a failure that halts it, or a cancel. `detail`
    names the signal, or the task that failed.
    """

    epoch: int
    cause: Literal["signal", "timeout", "failure", "cancel"]
    detail: str = ""


class BatchPaused(BatchEvent, frozen=True, kw_only=True, tag="BATCH_PAUSED"):
    """Nothing new is started, by the request of that number."""

    by: str
    request: int


class BatchUnpaused(BatchEvent, frozen=True, kw_only=True, tag="BATCH_UNPAUSED"):
    """It goes on."""

    by: str
    request: int


class BatchChanged(BatchEvent, frozen=True, kw_only=True, tag="BATCH_CHANGED"):
    """How it runs was changed: what is `set`, to what."""

    by: str
    request: int
    set_: dict[str, object] = msgspec.field(name="set")


class BatchStopped(BatchEvent, frozen=True, kw_only=True, tag="BATCH_STOPPED"):
    """These `tasks`, which run, are ended before their time, by the request of that number. `cause` as in TaskStopped.

    Nothing new starts until somebody resumes the batch.
    """

    cause: Literal["signal", "timeout", "failure"]
    detail: str = ""
    tasks: tuple[str, ...] = ()
    request: int


class TaskAtWork(msgspec.Struct, frozen=True, kw_only=True):
    """A task that runs: since so many seconds, having printed so much."""

    task: str
    seconds: float
    output_bytes: int = 0


class ClosedPool(msgspec.Struct, frozen=True, kw_only=True):
    """A pool of which nothing is taken `until` then, for a rate limit."""

    pool: str
    until: str


class BatchProgress(BatchEvent, frozen=True, kw_only=True, tag="BATCH_PROGRESS"):
    """How far it is. `eta_seconds`: within which time all is likely done, in 1, 5 and 9 of 10 cases; null: not known.

    Of so many tasks as are `without_estimate` nobody knows how long they take: the time is that of the others then.
    Pools that are `closed_pools` are not in the estimate.
    """

    eta_seconds: tuple[float, float, float] | None = None
    without_estimate: int = 0
    running: tuple[TaskAtWork, ...] = ()
    closed_pools: tuple[ClosedPool, ...] = ()


class BatchDrained(BatchEvent, frozen=True, kw_only=True, tag="BATCH_DRAINED"):
    """Its coordinator left with work open, for a `signal` or, if that is empty, for the error in `error`."""

    signal: str = ""
    error: str = ""


class BatchEnded(BatchEvent, frozen=True, kw_only=True, tag="BATCH_ENDED"):
    """Base of the last events of who conducts it to an end: of `task_count` tasks, so many are in which state.

    `seconds` are those since it began with it; `total_seconds` those of all who did, without what was between them, as
    far as they told of it.
    """

    seconds: float
    total_seconds: float | None = None
    task_count: int
    critical_path: tuple[str, ...] = ()


class BatchCompleted(BatchEnded, frozen=True, kw_only=True, tag="BATCH_COMPLETED"):
    """All is done."""


class BatchPartial(BatchEnded, frozen=True, kw_only=True, tag="BATCH_PARTIAL"):
    """Some is done, or waits for an answer."""


class BatchFailed(BatchEnded, frozen=True, kw_only=True, tag="BATCH_FAILED"):
    """Nothing is done."""


class BatchCancelled(BatchEnded, frozen=True, kw_only=True, tag="BATCH_CANCELLED"):
    """It was cancelled."""


AnyEvent = (
    BatchStarted
    | BatchResumed
    | TaskQueued
    | TaskStarted
    | TaskAdopted
    | TaskCompleted
    | TaskRetrying
    | TaskFailed
    | TaskBlocked
    | TaskAnswered
    | TaskSkipped
    | TaskCancelled
    | TaskInterrupted
    | TaskStopped
    | BatchPaused
    | BatchUnpaused
    | BatchChanged
    | BatchStopped
    | BatchProgress
    | BatchDrained
    | BatchCompleted
    | BatchPartial
    | BatchFailed
    | BatchCancelled
)
"""An event."""

ENDS: dict[str, type[BatchCompleted] | type[BatchPartial] | type[BatchFailed] | type[BatchCancelled]] = {
    "COMPLETED": BatchCompleted,
    "PARTIAL": BatchPartial,
    "FAILED": BatchFailed,
    "CANCELLED": BatchCancelled,
}
"""The last event of a batch, by the state that it is in."""


def name_of(event: type[BatchEvent] | BatchEvent) -> str:
    """What an event is called."""
    tag = event.__struct_config__.tag
    assert isinstance(tag, str)
    return tag


def instant_ms(at_ns: int) -> str:
    """A time in UTC, to the millisecond."""
    return f"{_to_the_second(at_ns // 1_000_000_000)}.{at_ns // 1_000_000 % 1000:03}Z"


@functools.lru_cache(maxsize=4)
def _to_the_second(at: int) -> str:
    return datetime.datetime.fromtimestamp(at, tz=datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")


def instant_ns(at: str) -> int:
    """The nanoseconds since 1970 of a time as events have it."""
    return round(datetime.datetime.fromisoformat(at.replace("Z", "+00:00")).timestamp() * 1000) * 1_000_000
