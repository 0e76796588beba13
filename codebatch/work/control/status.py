"""The status of a batch of commands as a document: the answer of `status` and of the commands that change a batch.

Texts that explain the state of a task, a pool or an attempt are made here too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.model.change import UnrecordedPath
from codebatch.model.entry import display_path
from codebatch.model.text.instants import instant_text
from codebatch.model.work.command import CommandId
from codebatch.model.work.work_batch import EdgeKind, LeftOutTask, Work
from codebatch.query.status.holder_rows import HolderRow, holder_row
from codebatch.query.status.unapplied_changes import UnappliedChanges
from codebatch.query.status.unrecorded_work import UnrecordedRow, make_unrecorded_rows, unrecorded_work_text
from codebatch.query.status.work_status import CommandStatus
from codebatch.scheduling.lifecycle import CommandState
from codebatch.store import layout
from codebatch.store.work.notifications import NotificationHistory
from codebatch.system.processes.processes import signal_name
from codebatch.work.control.batches import WorkBatch
from codebatch.work.control.history import OlderBatch
from codebatch.work.control.list_changes import ListChanges
from codebatch.work.control.questions import OpenQuestion, open_questions
from codebatch.work.limit_texts import cap_text, clock_time, closed_pool_text, closed_pool_texts, pools_closed_now

FAILURE_REASON_TEXTS = {
    "timeout": "timed out",
    "stall": "printed nothing for too long",
    "memory": "used too much memory",
    "check": "its outputs or changes could not be stored",
    "start": "could not be started",
    "conflict": "the changes of tasks that it needs conflict",
    "interrupted": "interrupted: its worker or the machine died",
    "limited": "rate limited",
    "answer": "marked failed by user",
    "unneeded": "nothing to do",
    "unchanged": "unchanged since its last success",
    "when": "`when` did not end in time, or could not start",
}
"""The text of each reason for the end of an attempt, except `exit` and `signal`, whose text is the exit status."""
_STOP_CAUSE_TEXTS = {
    "signal": "{}",
    "timeout": "the batch reached its time limit",
    "failure": "{} failed",
    "cancel": "the batch was cancelled",
}
NOTHING_TO_DO_REASONS = ("unneeded", "when", "unchanged")
"""Reasons of a task that is done because there was nothing to do. A task that failed can have the reason `when` too."""
FAILED_NOTIFICATIONS_MAX = 10
_LINE_CHARACTERS_MAX = 80
_UNSUCCESSFUL_STATES = (CommandState.FAILED, CommandState.BLOCKED, CommandState.SKIPPED, CommandState.CANCELLED)


class WorkTaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """A task of a task list.

    - `explanation`: the reason for its state.
    - `round`: the number of its latest round, or 0 if the task never started. Each retry begins a new round.
    - `try_number`: the number of the last or next try.
    - `tries_max`: the maximum number of tries.
    - `exit_status`: negative if a signal ended the command.
    - `log`: the path of the latest log.
    - `question`, `question_text`: the digest and the text of an open question.
    - `result_text`: the text in the JSON output of the last attempt.
    - `cost`: the sum of the costs that its attempts reported, or null if none reported a cost.
    - `unrecorded`: the paths with work of an isolated task that its changes do not record.
    - `changed_nothing`: whether an isolated task is done and made no change.
    - `notes`: the limit that ended the last attempt, and what was ignored, cut or replaced by a default.
    """

    id: str
    title: str
    state: str
    needs: tuple[str, ...]
    after: tuple[str, ...]
    explanation: str
    round: int
    try_number: int
    tries_max: int
    exit_status: int | None
    reason: str | None
    log: str | None
    question: str | None
    question_text: str | None
    result_text: str
    cost: float | None
    unrecorded: tuple[UnrecordedRow, ...]
    changed_nothing: bool
    notes: tuple[str, ...]


class ClosedPoolRow(msgspec.Struct, frozen=True, kw_only=True):
    """A closed pool. Until the time `until`, no task can take tokens from this pool.

    `reason` is `limited` after a rate limit, and `hours` outside its hours. An empty name means the whole list.
    """

    pool: str
    until: str
    reason: str
    text: str


class MetCapRow(msgspec.Struct, frozen=True, kw_only=True):
    """A cap that is met, so that no more tasks of its scope start.

    `scope` is empty for the list, `pool.NAME` or `task.ID`. `cap` is the setting, `limit` its value and `used` what the
    attempts used. For a deadline, both are the deadline in seconds since 1970.
    """

    scope: str
    cap: str
    limit: float
    used: float
    text: str


class FailedNotificationRow(msgspec.Struct, frozen=True, kw_only=True):
    """A notification that was given up after a number of `tries`. `at` is the time of the last try."""

    event: str
    cursor: str
    at: str
    tries: int
    problem: str


class NotificationRows(msgspec.Struct, frozen=True, kw_only=True):
    """The notifications that were not delivered.

    - `failed_count`, `failed`: those that were given up, and the last of them, at most FAILED_NOTIFICATIONS_MAX.
    - `owed_count`: those that a killed process owes. `codebatch resume` delivers them.
    """

    failed_count: int
    failed: tuple[FailedNotificationRow, ...]
    owed_count: int


class WorkStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a batch of a task list.

    - `source`, `root`: the task list, and the directory of its tasks.
    - `counts`: the number of tasks in each state.
    - `tasks`: the tasks in the order of the task list.
    - `eta_seconds`: three estimates of the remaining time. The batch ends within these times with a probability of 10%,
      50% and 90%. It is null if no estimate is possible.
    - `stalled`: tasks are left, but no process runs the batch.
    - `timed_out`: the batch reached its time limit. No task starts until the batch is resumed.
    - `closed_pools`: the pools that wait for the end of a rate limit, or for their hours.
    - `cost`: the sum of the costs that attempts reported, or null if no attempt reported a cost.
    - `cost_unit`: the unit of costs, or empty. `costs_unknown` counts attempts under a cap whose cost is unknown.
    - `caps`: the caps that are met. A person raises them with `codebatch work set`.
    - `coordinator`: the process that runs the batch.
    - `not_responding_since`: the time since which this process has not reported, if that is more than a minute. It is
      stopped or hangs. Otherwise null; also null if it runs on another host, where this cannot be known.
    - `workers`: the processes that run commands.
    - `unapplied`: the changes of isolated tasks that `codebatch apply` has not written.
    - `notifications`: the notifications that were not delivered.
    - `left_out`: the tasks that `--unfinished` selected and left out, and the reason.
    - `older_batch`: an older batch of the list with tasks that are not done. Null if there is none, missing if it was
      not looked for.
    - `list_changes`: how the task list differed from the batch when the batch was resumed, before any `--reload`. It is
      null if there were no differences.
    """

    batch_id: str
    project: str
    pipeline: str
    source: str
    root: str
    status: str
    stalled: bool
    timed_out: bool
    paused: bool
    strategy: str
    max_parallel: int
    started_at: str
    ended_at: str | None
    counts: dict[str, int]
    eta_seconds: tuple[float, float, float] | None
    closed_pools: tuple[ClosedPoolRow, ...]
    cost: float | None
    cost_unit: str
    costs_unknown: int
    caps: tuple[MetCapRow, ...]
    coordinator: HolderRow | None
    not_responding_since: str | None
    workers: tuple[HolderRow, ...]
    tasks: tuple[WorkTaskRow, ...]
    unapplied: UnappliedChanges
    notifications: NotificationRows
    left_out: tuple[LeftOutTask, ...]
    older_batch: OlderBatch | UnsetType | None = UNSET
    list_changes: ListChanges | None


def make_work_status(
    work_batch: WorkBatch, changes: ListChanges | None = None, older: OlderBatch | UnsetType | None = UNSET
) -> WorkStatus:
    """Return the status of a batch as a document. `changes` becomes its `list_changes`, `older` its `older_batch`."""
    status, work = work_batch.standing, work_batch.standing.work
    return WorkStatus(
        batch_id=work_batch.batch.id,
        project=display_path(work_batch.batch.about.project_root),
        pipeline=work_batch.batch.about.pipeline,
        source=work.source,
        root=display_path(work.root),
        status=status.state.value,
        stalled=status.is_stalled,
        timed_out=status.is_expired,
        paused=status.is_paused,
        strategy=work.strategy,
        max_parallel=status.max_parallel,
        started_at=instant_text(work_batch.batch.about.created_at_ns),
        ended_at=None if work_batch.ended_ns is None else instant_text(work_batch.ended_ns),
        counts=status.counts,
        eta_seconds=None if (eta := work_batch.eta) is None else eta.seconds,
        closed_pools=tuple(
            ClosedPoolRow(
                pool=pool,
                until=instant_text(until_ns),
                reason="hours" if pool in status.by_hours else "limited",
                text=closed_pool_text(pool, until_ns, status.by_hours),
            )
            for pool, until_ns in pools_closed_now(status.closed).items()
        ),
        cost=status.cost,
        cost_unit=work.limits_or_none.cost_unit,
        costs_unknown=status.unknown_cost_count,
        caps=tuple(
            MetCapRow(
                scope=cap.scope,
                cap=cap.name,
                limit=cap.limit / 1e9 if cap.name == "deadline" else cap.limit,
                used=cap.used / 1e9 if cap.name == "deadline" else cap.used,
                text=cap_text(cap, work.limits_or_none.cost_unit),
            )
            for cap in status.caps
        ),
        coordinator=None if status.coordinator is None else holder_row(status.coordinator),
        not_responding_since=None if status.silent_since_ns is None else instant_text(status.silent_since_ns),
        workers=tuple(map(holder_row, status.workers)),
        tasks=tuple(_task_rows(work_batch)),
        unapplied=work_batch.unapplied,
        notifications=_notification_rows(work_batch.notifications),
        left_out=work.left_out or (),
        older_batch=older,
        list_changes=None if changes is None or changes.is_nothing else changes,
    )


def _notification_rows(history: NotificationHistory) -> NotificationRows:
    return NotificationRows(
        failed_count=len(history.failed),
        failed=tuple(
            FailedNotificationRow(
                event=record.notified,
                cursor=record.notified_cursor,
                at=record.at,
                tries=record.tries,
                problem=record.problem,
            )
            for record in history.failed[-FAILED_NOTIFICATIONS_MAX:]
        ),
        owed_count=len(history.owed) + history.lacks_end,
    )


def _task_rows(work_batch: WorkBatch) -> list[WorkTaskRow]:
    work = work_batch.standing.work
    needed, awaited = _edge_targets_by_source(work, "needs"), _edge_targets_by_source(work, "after")
    logs = work_batch.batch.root / layout.LOGS
    questions_by_task = {status.task: status for status in open_questions(work_batch)}
    unrecorded = work_batch.unrecorded
    unchanged = frozenset(work_batch.unapplied.unchanged)
    rows = []
    for status, why in iter_task_explanations(work_batch, unrecorded, unchanged):
        rows.append(
            WorkTaskRow(
                id=status.id,
                title=work.titles.get(status.id, ""),
                state=status.state.value,
                needs=tuple(needed.get(status.id, ())),
                after=tuple(awaited.get(status.id, ())),
                explanation=why,
                round=status.round,
                try_number=max(status.failed_tries, 1)
                if status.state in _UNSUCCESSFUL_STATES
                else status.failed_tries + 1,
                tries_max=1 + status.retries,
                exit_status=status.exit_status,
                reason=status.reason,
                log=f"{logs}/{status.log}" if status.log else None,
                question=status.question or None,
                question_text=questions_by_task[status.id].text if status.id in questions_by_task else None,
                result_text=status.report.text if status.report else "",
                cost=status.cost,
                unrecorded=tuple(make_unrecorded_rows(status.id, unrecorded.get(status.id, ()))),
                changed_nothing=status.id in unchanged,
                notes=status.notes,
            )
        )
    return rows


def iter_task_explanations(
    work_batch: WorkBatch, unrecorded: Mapping[CommandId, Sequence[UnrecordedPath]], unchanged: Set[CommandId]
) -> Iterator[tuple[CommandStatus, str]]:
    """Yield each command, and the reason for its state as text. `unrecorded` is that of the batch.

    `unchanged` are the isolated tasks that are done and changed nothing.
    """
    work, commands = work_batch.standing.work, work_batch.standing.commands
    needed, awaited = _edge_targets_by_source(work, "needs"), _edge_targets_by_source(work, "after")
    states = {status.id: status.state for status in commands}
    closed = pools_closed_now(work_batch.standing.closed)
    open_by_task = {status.task: status for status in open_questions(work_batch)}
    for status in commands:
        predecessors = (
            (*needed.get(status.id, ()), *awaited.get(status.id, ())) if status.state is CommandState.PENDING else ()
        )
        waits = [on for on in predecessors if not states[on].is_ended]
        if status.state is CommandState.READY and status.round == status.ended and closed:
            own_pools = ("", *work.task_policy(status.id).pools)
            pools = {pool: closed[pool] for pool in own_pools if pool in closed}
            yield status, ", ".join(closed_pool_texts(pools, work_batch.standing.by_hours))
        elif status.cap is not None and not waits:
            yield status, cap_text(status.cap, work.limits_or_none.cost_unit)
        else:
            why_held = _reason_to_hold(work_batch)
            is_restarted = status.state is CommandState.READY and work_batch.standing.coordinator is not None
            restart = "it is restarted" if is_restarted else "`resume` restarts it"
            why = _explanation(status, waits, open_by_task.get(status.id), restart, why_held)
            newer = f"needs {status.newer_need}, which ran again since" if status.newer_need is not None else ""
            lost = unrecorded_work_text(status.unrecorded, unrecorded.get(status.id, ())) if status.unrecorded else ""
            nothing = "changed nothing" if status.id in unchanged else ""
            yield status, "; ".join(filter(None, (nothing, why, newer, lost, *status.notes)))


def _edge_targets_by_source(work: Work, kind: EdgeKind) -> dict[CommandId, list[CommandId]]:
    """Map each command to the commands that it depends on by edges of a kind."""
    targets: dict[CommandId, list[CommandId]] = {}
    for edge in work.edges:
        if edge.kind == kind:
            targets.setdefault(edge.task, []).append(edge.on)
    return targets


def _reason_to_hold(work_batch: WorkBatch) -> str:
    """Return the reason why tasks do not start that wait for no other task."""
    held = [cap_text(cap, "") for cap in work_batch.standing.caps if cap.name == "deadline"] or ["too many failures"]
    return "the batch reached its time limit" if work_batch.standing.is_expired else held[0]


def _explanation(
    command: CommandStatus, waits: list[str], question: OpenQuestion | None, restart: str, why_held: str
) -> str:
    match command.state:
        case CommandState.PENDING | CommandState.READY if command.last_stop is not None:
            return f"stopped{attempt_stop_text(command.last_stop.cause, command.last_stop.detail)}; {restart}"
        case CommandState.FAILED:
            return failure_reason_text(command.reason, command.exit_status)
        case CommandState.SKIPPED:
            return "skipped by user" if command.cause == command.id else f"needs {command.cause}"
        case CommandState.WAITING if command.until_ns:
            return f"rate limited until {clock_time(command.until_ns)}"
        case CommandState.WAITING:
            return f"{failure_reason_text(command.reason, command.exit_status)}; will be retried"
        case CommandState.BLOCKED if question is not None:
            return first_line(question.text)
        case CommandState.DONE:
            nothing_to_do = failure_reason_text(command.reason, command.exit_status)
            return nothing_to_do or ("" if command.report is None else first_line(command.report.text))
        case CommandState.PENDING if waits:
            more = f" and {len(waits) - 3} more" if len(waits) > 3 else ""
            return f"waits for {', '.join(waits[:3])}{more}"
        case CommandState.PENDING | CommandState.READY if command.round > command.ended:
            return f"{FAILURE_REASON_TEXTS['interrupted']}; {restart}"
        case CommandState.PENDING:
            return f"no new tasks are started: {why_held}"
        case _:
            return ""


def first_line(text: str) -> str:
    """Return the first line of an output or a question, cut to `_LINE_CHARACTERS_MAX` characters."""
    text = text.partition("\n")[0]
    return text if len(text) <= _LINE_CHARACTERS_MAX else f"{text[:_LINE_CHARACTERS_MAX]}…"


def failure_reason_text(reason: str | None, exit_status: int | None) -> str:
    """Return the reason why an attempt failed as text, or an empty text if it succeeded."""
    if reason == "when" and exit_status == 1:
        return "nothing to do: `when` is not met"
    if reason in ("exit", "signal"):
        return _exit_status_text(exit_status)
    if reason in ("check", "when") and exit_status is not None:
        return f"`{reason}`: {_exit_status_text(exit_status)}"
    return FAILURE_REASON_TEXTS.get(reason or "", "")


def _exit_status_text(status: int | None) -> str:
    """Return an exit status as text. A negative status is the number of a signal."""
    return f"exit status {status}" if status is None or status >= 0 else f"signal {signal_name(-status)}"


def stop_reason_text(cause: str, detail: str) -> str:
    """Return the reason why attempts were stopped early as text."""
    return _STOP_CAUSE_TEXTS[cause].format(detail)


def attempt_stop_text(cause: str, detail: str) -> str:
    """Return the reason of `stop_reason_text` as text that follows the word "stopped"."""
    return f"{' by ' if cause == 'signal' else ': '}{stop_reason_text(cause, detail)}"
