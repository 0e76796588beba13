"""Events of a batch while it runs: a stream with one event a line (SPEC.md "Events"). No decision depends on them.

The coordinator of a work batch writes the stream, one file for each epoch of its lease. For an analysis, readers derive
a short stream from the files on disk. The module is as long as it is because each event has a documented type.
"""

from __future__ import annotations

import datetime
import functools
import re
from typing import Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.model.documents import Document

EVENT_FORMAT = 1
_CURSOR = re.compile(r"([A-Za-z0-9-]+):([0-9]{1,9})\.([0-9]{1,12})\Z", re.ASCII)


class EventCursor(NamedTuple):
    """A position in the event stream of one batch: after event `seq` of an epoch.

    Cursors can be compared; a later position is greater. Texts for clients also have the ID of the batch, see
    `cursor_text`.
    """

    epoch: int
    seq: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.seq}"


FIRST_CURSOR = EventCursor(0, 0)


def cursor_text(batch_id: str, place: EventCursor) -> str:
    """Return a position in the event stream of a batch as text: `batch-20260102-030405-000000-c0ffee:1.42`."""
    return f"{batch_id}:{place}"


def parse_cursor(text: str) -> tuple[str, EventCursor] | None:
    """Return the ID of a batch and the position in its event stream that a text names, or None for other texts."""
    match = _CURSOR.match(text)
    return (match[1], EventCursor(int(match[2]), int(match[3]))) if match else None


class EventHead(Document, frozen=True, kw_only=True):
    """Members that every event has.

    `seq` counts the events of the epoch from 1. `at` is the time in UTC (RFC 3339, with milliseconds). `counts` maps
    each state to the number of tasks in it. For an analysis, it counts pairs of a file and a task.
    """

    format: int = EVENT_FORMAT
    cursor: str
    seq: int
    at: str
    batch_id: str
    counts: dict[str, int]

    @property
    def place(self) -> EventCursor:
        """The position after this event."""
        parsed = parse_cursor(self.cursor)
        return FIRST_CURSOR if parsed is None else parsed[1]


class BatchEvent(EventHead, frozen=True, kw_only=True, tag_field="event", tag="BATCH"):
    """Base of the events."""


class TaskEvent(BatchEvent, frozen=True, kw_only=True, tag="BATCH_TASK"):
    """Members that every event of a task has.

    `round` counts all attempts of the task. `try` counts the attempts since the task was last opened by a request.
    """

    task: str
    title: str
    round: int
    try_: int = msgspec.field(name="try")
    tries_max: int


class BatchStarted(BatchEvent, frozen=True, kw_only=True, tag="BATCH_STARTED"):
    """A process started the batch for the first time.

    `requests` counts the requests that were made before. If `notifies` is set, each notification is recorded by an
    event BATCH_NOTIFIED.
    """

    source: str
    strategy: str
    max_parallel: int
    on_failure: str
    task_count: int
    task_ids: tuple[str, ...]
    edges: dict[str, int]
    requests: int = 0
    notifies: bool | UnsetType = UNSET


class BatchResumed(BatchEvent, frozen=True, kw_only=True, tag="BATCH_RESUMED"):
    """A process resumed the batch. `after` is the reason why the batch had stopped.

    - `kill`: the process that ran the batch was killed.
    - `drain`: that process stopped early, with tasks left.
    - `request`: the batch had ended, and a request opened tasks again.

    `reopened` lists the tasks that requests have opened since the batch stopped. `adopted` lists the tasks that are
    still running in workers of the earlier process. `requests` and `notifies` are as in BatchStarted.
    """

    after: Literal["kill", "drain", "request"]
    reopened: tuple[str, ...]
    adopted: tuple[str, ...]
    requests: int = 0
    notifies: bool | UnsetType = UNSET


class TaskQueued(TaskEvent, frozen=True, kw_only=True, tag="BATCH_TASK_QUEUED"):
    """The task is ready to start. The event occurs once per attempt.

    `position` is the number of tasks that are ready, including this task.
    """

    position: int


class TaskStarted(TaskEvent, frozen=True, kw_only=True, tag="BATCH_TASK_STARTED"):
    """The task was assigned to a worker.

    `worker` is the ID of the worker, and `pid` is its process. `log` is the name of a file in the directory `logs/` of
    the batch.
    """

    worker: str
    pid: int
    log: str
    estimate_seconds: float | None = None


class TaskAdopted(TaskEvent, frozen=True, kw_only=True, tag="BATCH_TASK_ADOPTED"):
    """The task was found running when the batch was resumed.

    `pid` is the process of the worker. `since` is the time when the task started. Unknown values are null.
    """

    pid: int | None = None
    since: str | None = None


class TaskCompleted(TaskEvent, frozen=True, kw_only=True, tag="BATCH_TASK_COMPLETED"):
    """The task is done. If `marked_done` is set, a request marked it as done. Unknown values are null.

    `reason` is `when` or `unneeded` if there was nothing to do: `run` did not start, or ended with `skip_status`. It is
    `unchanged` if the task did not start because nothing has changed since its last success.
    `unrecorded` is the number of paths with work of an isolated task that its changes do not record. `notes` say what
    was ignored, cut or replaced by a default in the attempt.
    """

    seconds: float | None = None
    cpu_seconds: float | None = None
    memory_peak_bytes: int | None = None
    exit_status: int | None = None
    reason: str | UnsetType = UNSET
    marked_done: bool = False
    cost: float | None = None
    unrecorded: int = 0
    notes: tuple[str, ...] = ()


class _UnsuccessfulAttempt(TaskEvent, frozen=True, kw_only=True, tag="BATCH_TASK_UNSUCCESSFUL"):
    """Base of events of unsuccessful attempts.

    `signal` is the signal that ended the command, `log_tail` the last lines of its output. `notes` name the limit that
    ended the attempt, with its figures, and what was ignored, cut or replaced by a default.
    """

    reason: str | None = None
    exit_status: int | None = None
    signal: str = ""
    seconds: float | None = None
    cost: float | None = None
    log_tail: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class TaskRetrying(_UnsuccessfulAttempt, frozen=True, kw_only=True, tag="BATCH_TASK_RETRYING"):
    """The task failed and will be retried.

    If the reason is `limited`, the command reached a rate limit. This does not count as a try. The task waits until the
    time `until`. Before this time, no other task that uses one of its `pools` starts.
    """

    wait_seconds: float | None = None
    until: str | None = None
    pools: tuple[str, ...] = ()


class TaskFailed(_UnsuccessfulAttempt, frozen=True, kw_only=True, tag="BATCH_TASK_FAILED"):
    """The task failed. If the reason is `answer`, an answer marked it as failed."""


class AskedQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """The question that a task waits for. If `choices` is not empty, the answer must be one of them.

    If `human` is set, only a person may answer.
    """

    digest: str
    text: str
    choices: tuple[str, ...] = ()
    human: bool = False


class TaskBlocked(TaskEvent, frozen=True, kw_only=True, tag="BATCH_TASK_BLOCKED"):
    """The task waits for an answer. Its command has ended.

    If `is_live` is set, no attempt has ended with the question: the command is still running, or a met cap keeps the
    task and all other tasks of its scope from starting. Otherwise, `seconds` is the duration of the attempt, or null if
    it is unknown.
    """

    question: AskedQuestion
    is_live: bool = False
    seconds: float | None = None


class TaskAnswered(TaskEvent, frozen=True, kw_only=True, tag="BATCH_TASK_ANSWERED"):
    """The question of the task was answered by `by`. `request` is the number of the request with the answer."""

    by: str
    text: str
    request: int


class TaskSkipped(TaskEvent, frozen=True, kw_only=True, tag="BATCH_TASK_SKIPPED"):
    """The task is skipped because of another task or of a request.

    `cause` identifies this task or this request.
    """

    cause: str
    reason: str


class TaskCancelled(TaskEvent, frozen=True, kw_only=True, tag="BATCH_TASK_CANCELLED"):
    """The attempt of the task was ended because of a request."""

    seconds: float | None = None


class TaskInterrupted(TaskEvent, frozen=True, kw_only=True, tag="BATCH_TASK_INTERRUPTED"):
    """The worker of the task died, or the machine stopped. `epoch` is the lease of the attempt.

    `next_action` is what happens to the task next. It is `none` if the task must not run any more.
    """

    epoch: int
    next_action: Literal["restart", "fail", "ask", "none"]


class TaskStopped(TaskEvent, frozen=True, kw_only=True, tag="BATCH_TASK_STOPPED"):
    """The attempt was ended early. It did not fail, and does not count as a try. `epoch` is the lease of the attempt.

    `cause` is one of:

    - `signal`: the coordinator received the signal `detail`.
    - `timeout`: the batch reached its time limit.
    - `failure`: the task `detail` failed, and the batch halts at failures.
    - `cancel`: the batch was cancelled.
    """

    epoch: int
    cause: Literal["signal", "timeout", "failure", "cancel"]
    detail: str = ""


class BatchPaused(BatchEvent, frozen=True, kw_only=True, tag="BATCH_PAUSED"):
    """No more tasks are started. `request` is the number of the request to pause."""

    by: str
    request: int


class BatchUnpaused(BatchEvent, frozen=True, kw_only=True, tag="BATCH_UNPAUSED"):
    """Tasks are started again after a pause. `request` is the number of the request."""

    by: str
    request: int


class BatchChanged(BatchEvent, frozen=True, kw_only=True, tag="BATCH_CHANGED"):
    """The batch was changed. `set` maps each changed limit to its new value. `added` are the IDs of added tasks."""

    by: str
    request: int
    set_: dict[str, object] = msgspec.field(name="set", default_factory=dict)
    added: tuple[str, ...] = ()


class BatchStopped(BatchEvent, frozen=True, kw_only=True, tag="BATCH_STOPPED"):
    """The attempts of the running `tasks` are ended early. `cause` and `detail` are as in TaskStopped.

    No task starts until the batch is resumed. `request` is the number of the request to stop.
    """

    cause: Literal["signal", "timeout", "failure"]
    detail: str = ""
    tasks: tuple[str, ...] = ()
    request: int


class RunningTask(msgspec.Struct, frozen=True, kw_only=True):
    """A running task: the seconds since its start, and the bytes that it printed so far.

    `worker` is the ID of the worker that runs the task. In an analysis, `path` is the file that the task is processing,
    and `seconds` counts from the start of this file. Unknown values are null.
    """

    task: str
    seconds: float
    output_bytes: int = 0
    path: str | None = None
    worker: str | None = None


class ClosedPool(msgspec.Struct, frozen=True, kw_only=True):
    """A closed pool. Until the time `until`, no task can take tokens from this pool.

    `reason` is `limited` after a rate limit, and `hours` outside its hours. An empty name means the whole list.
    """

    pool: str
    until: str
    reason: Literal["limited", "hours"] = "limited"


class CapReached(msgspec.Struct, frozen=True, kw_only=True):
    """A cap that is met, so that no more tasks of its scope start.

    `scope` is empty for the list, `pool.NAME` or `task.ID`. For a deadline, `limit` and `used` are in ns since 1970.
    """

    scope: str
    cap: str
    limit: float
    used: float


class BatchProgress(BatchEvent, frozen=True, kw_only=True, tag="BATCH_PROGRESS"):
    """The progress of the batch.

    `eta_seconds` has three estimates of the remaining time. The batch ends within these times with a probability of
    10%, 50% and 90%. It is null if no estimate is possible.

    The estimates do not include tasks of unknown duration, which `without_estimate` counts. `cost` is the sum of the
    costs that attempts reported, in `cost_unit`. `caps` are the caps that are met.
    """

    eta_seconds: tuple[float, float, float] | None = None
    without_estimate: int = 0
    running: tuple[RunningTask, ...] = ()
    closed_pools: tuple[ClosedPool, ...] = ()
    paused: bool = False
    cost: float | None = None
    cost_unit: str = ""
    caps: tuple[CapReached, ...] = ()


class BatchDrained(BatchEvent, frozen=True, kw_only=True, tag="BATCH_DRAINED"):
    """The coordinator stopped before all tasks were done.

    `signal` is the signal that stopped the coordinator. If it is empty, `error` is the error that stopped the
    coordinator.
    """

    signal: str = ""
    error: str = ""


class BatchNotified(BatchEvent, frozen=True, kw_only=True, tag="BATCH_NOTIFIED"):
    """A notification was delivered or, if `problem` is not empty, given up after a number of `tries`.

    `notified` and `notified_cursor` are the name and the cursor of the event that it reports. Unlike all other events,
    this event can follow the end of the batch.
    """

    notified: str
    notified_cursor: str
    tries: int
    problem: str = ""


class BatchEnded(BatchEvent, frozen=True, kw_only=True, tag="BATCH_ENDED"):
    """Base of the last event of a batch. `task_count` is the number of its tasks.

    `seconds` is the time since this process started or resumed the batch. `total_seconds` adds the time of earlier
    processes that ran the batch, as far as it is known. `cost`, `cost_unit` and `caps` are as in BatchProgress.
    """

    seconds: float
    total_seconds: float | None = None
    task_count: int
    critical_path: tuple[str, ...] = ()
    cost: float | None = None
    cost_unit: str = ""
    caps: tuple[CapReached, ...] = ()


class BatchCompleted(BatchEnded, frozen=True, kw_only=True, tag="BATCH_COMPLETED"):
    """All tasks are done."""


class BatchPartial(BatchEnded, frozen=True, kw_only=True, tag="BATCH_PARTIAL"):
    """The batch ended. At least one task is done or waits for an answer, and at least one task is not done."""


class BatchFailed(BatchEnded, frozen=True, kw_only=True, tag="BATCH_FAILED"):
    """The batch ended, and no task is done."""


class BatchCancelled(BatchEnded, frozen=True, kw_only=True, tag="BATCH_CANCELLED"):
    """The batch was cancelled."""


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
    | BatchNotified
    | BatchCompleted
    | BatchPartial
    | BatchFailed
    | BatchCancelled
)
"""Union of all events."""

END_EVENT_TYPES: dict[str, type[BatchCompleted] | type[BatchPartial] | type[BatchFailed] | type[BatchCancelled]] = {
    "COMPLETED": BatchCompleted,
    "PARTIAL": BatchPartial,
    "FAILED": BatchFailed,
    "CANCELLED": BatchCancelled,
}
"""The type of the last event of a batch, by the batch's final state."""


def event_name(event: type[BatchEvent] | BatchEvent) -> str:
    """Return the name of an event or of an event type, for example `BATCH_STARTED`."""
    tag = event.__struct_config__.tag
    assert isinstance(tag, str)
    return tag


def instant_ms(at_ns: int) -> str:
    """Format nanoseconds since 1970 as a time in UTC, to the millisecond."""
    return f"{_at_full_second(at_ns // 1_000_000_000)}.{at_ns // 1_000_000 % 1000:03}Z"


@functools.lru_cache(maxsize=4)
def _at_full_second(at: int) -> str:
    return datetime.datetime.fromtimestamp(at, tz=datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")


def instant_ns(at: str) -> int:
    """Parse the time of an event, which `instant_ms` formatted. Return nanoseconds since 1970."""
    return round(datetime.datetime.fromisoformat(at.replace("Z", "+00:00")).timestamp() * 1000) * 1_000_000
