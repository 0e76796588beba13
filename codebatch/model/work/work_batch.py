"""The settings of a work batch: dependencies, scheduling policies and limits (SPEC.md "Work batches")."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.model.digest import DIGEST_PATTERN, Digest
from codebatch.model.documents import Document, DocumentError, decode_document, encode_document
from codebatch.model.shard import ShardId
from codebatch.model.work.command import CommandId
from codebatch.model.work.limits import NO_LIMITS, WorkLimits
from codebatch.model.work.trees import TreeSettings

WORK_FORMAT = 1
WORK_TASK = "run"
"""The only task in the plan of a work batch. Each round of this task is one attempt of a command."""
WORK_LISTING = "work"
"""The listing method of a snapshot that contains commands, one for each entry, instead of files of a tree."""

ADDED_SHARD = ShardId("0" * 16)
"""The shard of commands that requests have added to a batch. Shards of the plan have other IDs."""

COMMANDS_MAX = 50_000
RESTARTS_MAX = 3
ANSWERING_SECONDS = 120.0
RETRIES_MAX = 100
BACKOFF_SECONDS = 1.0
BACKOFF_FACTOR = 2.0
BACKOFF_SECONDS_MAX = 300.0
WAITS_MAX = 100
"""Default of `waits_max`."""

Strategy = Literal["serial", "parallel", "auto"]
"""The order in which tasks run. `auto` means parallel, with dependencies inferred from the texts of the tasks."""
FailureAction = Literal["skip-dependents", "continue", "stop"]
InterruptedAction = Literal["restart", "fail", "ask"]
EdgeKind = Literal["needs", "after"]
BlockedAction = Literal["end", "wait"]
TroubleAction = Literal["fail", "ask"]
HaltMode = Literal["soon", "now"]
"""The way to stop a batch after a failure: `soon` lets running tasks finish, `now` terminates them."""
RetryReason = Literal["exit", "signal", "timeout", "stall", "check", "memory", "interrupted"]
"""Reasons of failed attempts that may be retried. A command that could not be started would fail again."""

RETRY_REASONS: tuple[RetryReason, ...] = ("exit", "signal", "timeout", "stall", "check", "memory")


class WorkEdge(msgspec.Struct, frozen=True, array_like=True):
    """A dependency of `task` on the task `on`.

    - `needs`: `task` starts when `on` is done.
    - `after`: `task` starts when `on` has ended, with any outcome.
    """

    task: CommandId
    on: CommandId
    kind: EdgeKind = "needs"


CONFIDENCE_MIN = 0.5
"""The minimum confidence at which an inferred dependency is used by default, from 0 to 1."""


class InferredEdge(msgspec.Struct, frozen=True, kw_only=True):
    """The evidence for an inferred dependency: a sentence with quotations, and its confidence from 0 to 1.

    `source` is `inferred` if the built-in rules found the dependency in the texts of the tasks. It is `command` if the
    command of the setting `infer` reported it.
    """

    task: CommandId
    on: CommandId
    source: Literal["inferred", "command"]
    evidence: str
    confidence: float


class RejectedEdge(msgspec.Struct, frozen=True, kw_only=True):
    """An inferred dependency that is not used, and the reason."""

    task: str
    on: str
    confidence: float
    evidence: str
    reason: str


class TaskPolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The rules by which the scheduler runs a task. A task without a policy has these defaults.

    - `priority`: among tasks that are ready, a task of higher priority starts first.
    - `pools`: the tokens that the task takes from each pool while it runs.
    - `exclusive`: no other task runs at the same time.
    - `if_interrupted`: what happens if the worker or the machine dies while the task runs. The task is started again,
      at most `restarts_max` times, or it fails, or a question is asked.
    - `expected_seconds`: the duration of the task, used until a run has measured it.
    - `retries`: the maximum number of retries after failures for one of `retry_reasons`. When a request opens the task,
      the count starts again at 0.
    - `backoff_seconds`: the waiting time before the first retry. Each later waiting time is `backoff_factor` times
      longer, up to `backoff_seconds_max`.
    - `on_exhausted`: whether the task fails or asks a question if no retry is left.
    - `on_stall`: whether the task fails or asks a question if it printed nothing for too long.
    - `cost_max`, `attempts_max`: caps of the task over all its attempts. A task that meets one starts no more attempts.
    - `waits_max`, `wait_seconds_max`: the maximum number and the total time of rate limits in a row that do not count
      as tries. After that, each counts as a failed try.
    - `outputs_of`: the tasks whose outputs the task uses.
    - `has_cost`: `result.cost` reads the cost of its attempts, so caps on cost apply to the task.
    """

    priority: int = 0
    pools: dict[str, int] = msgspec.field(default_factory=dict)
    exclusive: bool = False
    if_interrupted: InterruptedAction = "restart"
    restarts_max: int = RESTARTS_MAX
    expected_seconds: float | None = None
    retries: int = 0
    backoff_seconds: float = BACKOFF_SECONDS
    backoff_factor: float = BACKOFF_FACTOR
    backoff_seconds_max: float = BACKOFF_SECONDS_MAX
    retry_reasons: tuple[RetryReason, ...] = RETRY_REASONS
    on_exhausted: TroubleAction = "fail"
    on_stall: TroubleAction = "fail"
    cost_max: float | None = None
    attempts_max: int | None = None
    waits_max: int = WAITS_MAX
    wait_seconds_max: float | None = None
    has_cost: bool = False
    outputs_of: tuple[CommandId, ...] = ()

    def after_interruption(self, starts: int) -> InterruptedAction:
        """Return what happens to a task after an interruption. It was started `starts` times in the round."""
        if self.if_interrupted != "restart":
            return self.if_interrupted
        return "restart" if starts <= self.restarts_max else "fail"

    @property
    def is_repeatable(self) -> bool:
        """True if the task is restarted after an interruption of its first start."""
        return self.after_interruption(1) == "restart"


DEFAULT_POLICY = TaskPolicy()


EventName = Literal[
    "BATCH_STARTED", "BATCH_RESUMED", "BATCH_TASK_QUEUED", "BATCH_TASK_STARTED", "BATCH_TASK_ADOPTED",
    "BATCH_TASK_COMPLETED", "BATCH_TASK_RETRYING", "BATCH_TASK_FAILED", "BATCH_TASK_BLOCKED", "BATCH_TASK_ANSWERED",
    "BATCH_TASK_SKIPPED", "BATCH_TASK_CANCELLED", "BATCH_TASK_INTERRUPTED", "BATCH_TASK_STOPPED", "BATCH_PAUSED",
    "BATCH_UNPAUSED", "BATCH_CHANGED", "BATCH_STOPPED", "BATCH_PROGRESS", "BATCH_DRAINED", "BATCH_COMPLETED",
    "BATCH_PARTIAL", "BATCH_FAILED", "BATCH_CANCELLED",
]  # fmt: skip
"""The names of events (model/work/event.py)."""

NOTIFIED_EVENTS_DEFAULT: tuple[EventName, ...] = (
    "BATCH_TASK_BLOCKED", "BATCH_COMPLETED", "BATCH_PARTIAL", "BATCH_FAILED", "BATCH_CANCELLED", "BATCH_DRAINED",
)  # fmt: skip
NOTIFY_SECONDS = 10.0


class NotifySettings(msgspec.Struct, frozen=True, kw_only=True):
    """A command that receives events. `command` has the form of `run` of a task.

    It is run for each event that is listed in `events`, for at most `timeout_seconds` each.
    """

    command: str | tuple[str, ...]
    events: tuple[EventName, ...] = NOTIFIED_EVENTS_DEFAULT
    timeout_seconds: float = NOTIFY_SECONDS


class AnsweringRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rule that answers questions which the regular expression `match` matches.

    The rule gives `answer`, or with `human`, leaves the question to a person.
    """

    match: str
    answer: str = ""
    human: bool = False


class AnsweringPolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Automatic answers to questions of tasks, before a person is asked.

    The first rule that matches answers. If none matches, `command` is asked. At most `per_task_max` questions of a task
    are answered automatically, over all its attempts.
    """

    rules: tuple[AnsweringRule, ...] = ()
    command: str | tuple[str, ...] = ()
    timeout_seconds: float = ANSWERING_SECONDS
    per_task_max: int = 1


class TaskSuccess(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The last success of a task in an earlier batch. `outputs` and `inputs` are as in TaskOutcome."""

    batch: str
    outputs: Digest = Digest("")
    inputs: Digest = Digest("")


class ListOrigin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The way in which a task list was read, so that it can be read again.

    `directory` was the current directory. `files` are the absolute paths of the files that were given or found, or `-`
    for standard input. Files that they include are not listed. `options` are the command-line options that differ from
    their defaults.
    """

    directory: bytes
    files: tuple[bytes, ...]
    options: dict[str, object] = msgspec.field(default_factory=dict)


class LeftOutTask(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task that was selected by `--unfinished` and is not in the batch, because it could run twice.

    - `reason`: `active` if another batch runs the task or will run it, `interrupted` if it may not start again, `needs`
      if it depends on such a task.
    - `batch`: for `active`, the ID of the other batch.
    """

    task: CommandId
    reason: Literal["active", "interrupted", "needs"]
    batch: str = ""


class Work(Document, frozen=True, kw_only=True):
    """The document work.json: the settings and dependencies of a task list.

    - `source`: the origin of the list, for display.
    - `root`: the absolute path of the directory in which commands start.
    - `order`: the IDs of all tasks, in the order of the file.
    - `edges`, `inferred`: the dependencies, and the evidence for those that were inferred.
    - `titles`, `policies`: only values that differ from the default.
    - `on_failure`, `failures_max`, `halt`: with `stop`, no task starts after `failures_max` failures. `halt` determines
      whether running tasks may finish.
    - `on_blocked`: with `wait`, the coordinator keeps running while a question is open.
    - `start_every_seconds`: the minimum time between two starts.
    - `timeout_seconds`: the time limit of each coordinator.
    - `satisfied_needs`: dependencies on tasks that are in the list but not in the batch. They count as done.
    - `trees`: the settings of the trees of isolated commands. Missing if no command is isolated.
    - `done_before`: tasks that are in the list but not in the batch, because an earlier batch has done them. Each task
      is mapped to the digest of its definition in that batch (work/definition/definitions.py).
    - `limits`: caps, a deadline and hours (model/work/limits.py). Missing if there are none.
    - `left_out`: the tasks that `--unfinished` left out. Missing if there are none.
    - `successes`: the last successes of tasks of the list in earlier batches: of tasks in `done_before` with outputs,
      and of tasks that are skipped if nothing has changed. Missing if there are none.
    """

    format: int = WORK_FORMAT
    source: str
    root: bytes
    order: tuple[CommandId, ...]
    edges: tuple[WorkEdge, ...] = ()
    inferred: tuple[InferredEdge, ...] = ()
    titles: dict[CommandId, str] = msgspec.field(default_factory=dict)
    policies: dict[CommandId, TaskPolicy] = msgspec.field(default_factory=dict)
    strategy: Strategy = "serial"
    max_parallel: int = 1
    on_failure: FailureAction = "skip-dependents"
    failures_max: int = 1
    pools: dict[str, int] = msgspec.field(default_factory=dict)
    notify: NotifySettings | None = None
    on_blocked: BlockedAction = "end"
    answering: AnsweringPolicy | None = None
    start_every_seconds: float = 0.0
    origin: ListOrigin = ListOrigin(directory=b"", files=())
    satisfied_needs: tuple[WorkEdge, ...] = ()
    done_before: dict[CommandId, str] = msgspec.field(default_factory=dict)
    timeout_seconds: float | None = None
    halt: HaltMode = "soon"
    trees: TreeSettings | UnsetType = UNSET
    limits: WorkLimits | UnsetType = UNSET
    left_out: tuple[LeftOutTask, ...] | UnsetType = UNSET
    successes: dict[CommandId, TaskSuccess] | UnsetType = UNSET

    @property
    def limits_or_none(self) -> WorkLimits:
        """The limits, without any limit if they are missing."""
        return self.limits or NO_LIMITS

    def task_policy(self, command: CommandId) -> TaskPolicy:
        """Return the policy of a command."""
        return self.policies.get(command, DEFAULT_POLICY)


def encode_work(work: Work) -> bytes:
    """Return the bytes of work.json."""
    return encode_document(work)


def decode_work(data: bytes) -> Work:
    """Decode work.json. Raises DocumentError."""
    work = decode_document(data, Work, WORK_FORMAT)
    check_work(work)
    return work


def check_work(work: Work) -> None:
    """Raise DocumentError if a work batch refers to unknown tasks, or a task takes more tokens than its pool has.

    Limits below 1, and a root that is not absolute, are errors too.
    """
    known = set(work.order)
    if len(known) != len(work.order):
        raise DocumentError("a task is listed twice in its order")
    referenced = {*work.titles, *work.policies, *(id_ for edge in work.edges for id_ in (edge.task, edge.on))}
    if not referenced <= known or not work.root.startswith(b"/"):
        raise DocumentError("it refers to tasks that it does not have")
    if not {(edge.task, edge.on) for edge in work.inferred} <= {(edge.task, edge.on) for edge in work.edges}:
        raise DocumentError("it explains edges that it does not have")
    if work.max_parallel < 1 or work.failures_max < 1 or any(size < 1 for size in work.pools.values()):
        raise DocumentError("its limits are too small")
    if work.trees is not UNSET and not (work.trees.is_valid and _is_at_or_above(work.trees.repository, work.root)):
        raise DocumentError("the settings of its trees are invalid")
    digests = [digest for one in (work.successes or {}).values() for digest in (one.outputs, one.inputs) if digest]
    if not all(map(DIGEST_PATTERN.match, digests)):
        raise DocumentError("the digest of an earlier success is invalid")
    for policy in work.policies.values():
        if any(not 1 <= amount <= work.pools.get(pool, 0) for pool, amount in policy.pools.items()):
            raise DocumentError("a task takes more of a pool than the pool has")


def _is_at_or_above(directory: bytes, path: bytes) -> bool:
    """Return whether a directory is a path or above it. True for an empty directory."""
    return not directory or path == directory or path.startswith(directory.rstrip(b"/") + b"/")
