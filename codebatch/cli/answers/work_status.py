"""Where a batch of commands stands, for people and as JSON."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from codebatch.cli.answers.holders import HolderRow, holder_row, instant
from codebatch.cli.framework.context import CommandContext
from codebatch.cli.output.eta import clock_time, eta_text
from codebatch.cli.output.tables import table
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import count_of, human_seconds
from codebatch.model.work.command import CommandId
from codebatch.model.work.work_batch import EdgeKind, Work
from codebatch.query.status.work_status import CommandStatus
from codebatch.scheduling.lifecycle import CommandState
from codebatch.store import layout
from codebatch.store.batches.holders import HolderFile
from codebatch.system.clock import wall_ns
from codebatch.work.control.batches import NAMED_MAX, WorkBatch
from codebatch.work.control.list_changes import ListChanges
from codebatch.work.control.questions import OpenQuestion, open_questions

_REASONS = {
    "timeout": "timed out",
    "stall": "printed nothing for too long",
    "memory": "used too much memory",
    "check": "its check failed",
    "start": "could not be started",
    "interrupted": "interrupted: its worker or the machine died",
    "limited": "rate limited",
}
_STOPS = {
    "signal": "{}",
    "timeout": "the batch reached its time limit",
    "failure": "{} failed",
    "cancel": "the batch was cancelled",
}
_SAID_SHOWN_MAX = 80
_ENDED_FAILING = (CommandState.FAILED, CommandState.BLOCKED, CommandState.SKIPPED, CommandState.CANCELLED)
_TOLD_LAST = (
    CommandState.FAILED,
    CommandState.BLOCKED,
    CommandState.SKIPPED,
    CommandState.CANCELLED,
    CommandState.RUNNING,
    CommandState.READY,
    CommandState.WAITING,
    CommandState.PENDING,
)


class WorkTaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """A task of a task list.

    - `explanation`: the reason for its state.
    - `round`: the number of its attempts; 0 if it never started.
    - `try_number`: the number of the last or next try. `tries_max` is the maximum.
    - `exit_status`: negative if a signal ended the command.
    - `log`: the path of the latest log.
    - `question`, `question_text`: the digest and the text of an open question.
    - `result_text`, `cost`: values from the JSON output of the last attempt.
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


class ClosedPoolRow(msgspec.Struct, frozen=True, kw_only=True):
    """A pool that is closed because of a rate limit. Until the time `until`, no task can take tokens from this pool."""

    pool: str
    until: str


class WorkStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a task list. `counts` has the number of tasks in each state; `tasks` are in the order of the file.

    - `eta_seconds`: the estimated remaining time. With a probability of 10%, 50% and 90% the batch ends within these
      times. It is null if no estimate is possible.
    - `stalled`: tasks are left, but no process runs the batch.
    - `timed_out`: the batch reached its time limit. No task starts until the batch is resumed.
    - `closed_pools`: the pools that wait for the end of a rate limit.
    - `cost`: the sum of the costs that attempts reported, or null if no attempt reported a cost.
    - `coordinator`, `workers`: the process that runs the batch, and the processes that run commands.
    - `list_changes`: the differences between the batch and its list when the batch was resumed, before any --reload. It
      is null if there are none.
    """

    batch_id: str
    project: str
    pipeline: str
    source: str
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
    coordinator: HolderRow | None
    workers: tuple[HolderRow, ...]
    tasks: tuple[WorkTaskRow, ...]
    list_changes: ListChanges | None


def answer_work(
    answering: CommandContext,
    found: WorkBatch,
    lines: Iterable[str],
    name: str | None = None,
    changes: ListChanges | None = None,
) -> None:
    """Answer with a batch of commands: as JSON where it stands, else some lines. `name` as in `Answering.print`."""
    answering.batches.append(found.batch)
    answering.print(_document(found, changes) if answering.as_json else None, lines, name=name)


def answer_status(answering: CommandContext, found: WorkBatch) -> None:
    """What `status` says of a batch of commands."""
    answer_work(answering, found, status_lines(found), name="work-status")
    unreadable = found.standing.unreadable
    for each in unreadable[:NAMED_MAX]:
        answering.tell(
            f"damaged: the outcome of the last attempt of {each} cannot be read; the attempt is treated as interrupted"
        )
    if len(unreadable) > NAMED_MAX:
        answering.tell(
            f"damaged: the outcomes of {count_of(len(unreadable) - NAMED_MAX, 'more task')} cannot be read either"
        )
    if found.standing.is_stalled:
        answering.note(f"resume with: codebatch resume --batch {found.batch.id}")


def status_lines(found: WorkBatch) -> Iterator[str]:
    """Where a batch stands, for people."""
    stands, work = found.standing, found.standing.work
    stalled = " (stalled: no process is running it)" if stands.is_stalled else ""
    expired = " (time limit reached)" if stands.is_expired else ""
    paused = " (paused: no new tasks are started)" if stands.is_paused else ""
    at_once = f", {stands.max_parallel} at once" if stands.max_parallel > 1 else ""
    yield f"batch     {found.batch.id}"
    yield f"source    {work.source}"
    yield f"status    {stands.state.value}{stalled}{expired}{paused}"
    yield f"strategy  {work.strategy}{at_once}"
    yield f"started   {instant(found.batch.about.created_at_ns)}"
    if found.ended_ns is not None:
        yield f"ended     {instant(found.ended_ns)}"
    if (eta := found.eta) is not None:
        blocked = stands.counts.get(CommandState.BLOCKED.value, 0)
        yield f"left      {eta_text(eta.seconds, unknown=eta.unknown, blocked=blocked)}"
    for told in closed_texts(stands.closed):
        yield f"waits     {told}"
    if stands.coordinator is not None:
        yield f"runner    {_shown(stands.coordinator)}"
    elif stands.workers:
        yield "runner    none: running tasks will finish"
    titles = work.titles
    cells = ((each.state.lower(), each.id, titles.get(each.id) or "-", why or "-") for each, why in _reasons(found))
    yield from table(cells, ("state", "task", "title", "reason"))
    yield f"Summary: {summary(found)}"


def end_line(found: WorkBatch, seconds: float) -> str:
    """How a batch went: `PARTIAL: 2 of 3 done (67%), 1 failed, in 4m 18s`."""
    return f"{found.standing.state.value}: {summary(found)}, in {human_seconds(seconds)}"


def summary(found: WorkBatch) -> str:
    """How much of a batch is done, and what became of the rest."""
    counts, planned = found.standing.counts, len(found.standing.commands)
    done = counts.get(CommandState.DONE.value, 0)
    rest = [f"{counts[state.value]:,} {state.value.lower()}" for state in _TOLD_LAST if state.value in counts]
    cost = [] if found.standing.cost is None else [f"cost {found.standing.cost:g}"]
    return ", ".join([f"{done:,} of {planned:,} done ({100 * done // planned if planned else 100}%)", *rest, *cost])


def why_failed(reason: str | None, exit_status: int | None) -> str:
    """Why an attempt did not come to its end, for people; empty where it did."""
    if reason == "signal" and exit_status is not None and exit_status < 0:
        try:
            return f"signal {signal.Signals(-exit_status).name}"
        except ValueError:
            return f"signal {-exit_status}"
    if reason in ("exit", "signal"):
        return f"exit status {exit_status}"
    if reason == "check" and exit_status is not None:
        return f"check: exit status {exit_status}"
    return _REASONS.get(reason or "", "")


def _closed_now(closed: Mapping[str, int]) -> dict[str, int]:
    now_ns = wall_ns()
    return {pool: until_ns for pool, until_ns in sorted(closed.items()) if until_ns > now_ns}


def closed_texts(closed: Mapping[str, int]) -> list[str]:
    """Describe the pools that are still closed, and until when."""
    return [f"{wait_text([pool], until_ns)}: rate limited" for pool, until_ns in _closed_now(closed).items()]


def wait_text(pools: Sequence[str], until_ns: int) -> str:
    """Describe what a rate limit keeps waiting, and until when."""
    closed = f"pool {', '.join(pools)} closed" if pools else "waiting"
    return f"{closed} until {clock_time(until_ns)}"


def stop_reason(cause: str, detail: str) -> str:
    """Why attempts are ended before their time, for people."""
    return _STOPS[cause].format(detail)


def why_stopped(cause: str, detail: str) -> str:
    """As `stop_reason`, to stand behind the word "stopped"."""
    return f"{' by ' if cause == 'signal' else ': '}{stop_reason(cause, detail)}"


def _document(found: WorkBatch, changes: ListChanges | None) -> WorkStatus:
    stands, work = found.standing, found.standing.work
    return WorkStatus(
        batch_id=found.batch.id,
        project=display_path(found.batch.about.project_root),
        pipeline=found.batch.about.pipeline,
        source=work.source,
        status=stands.state.value,
        stalled=stands.is_stalled,
        timed_out=stands.is_expired,
        paused=stands.is_paused,
        strategy=work.strategy,
        max_parallel=stands.max_parallel,
        started_at=instant(found.batch.about.created_at_ns),
        ended_at=None if found.ended_ns is None else instant(found.ended_ns),
        counts=stands.counts,
        eta_seconds=None if (eta := found.eta) is None else eta.seconds,
        closed_pools=tuple(
            ClosedPoolRow(pool=pool, until=instant(until_ns)) for pool, until_ns in _closed_now(stands.closed).items()
        ),
        cost=stands.cost,
        coordinator=None if stands.coordinator is None else holder_row(stands.coordinator),
        workers=tuple(map(holder_row, stands.workers)),
        tasks=tuple(_rows(found)),
        list_changes=None if changes is None or changes.is_nothing else changes,
    )


def _rows(found: WorkBatch) -> list[WorkTaskRow]:
    work = found.standing.work
    needed, awaited = _wanted(work, "needs"), _wanted(work, "after")
    logs = found.batch.root / layout.LOGS
    asked = {each.task: each for each in open_questions(found)}
    rows = []
    for each, why in _reasons(found):
        rows.append(
            WorkTaskRow(
                id=each.id,
                title=work.titles.get(each.id, ""),
                state=each.state.value,
                needs=tuple(needed.get(each.id, ())),
                after=tuple(awaited.get(each.id, ())),
                explanation=why,
                round=each.round,
                try_number=max(each.tried, 1) if each.state in _ENDED_FAILING else each.tried + 1,
                tries_max=1 + work.policy(each.id).retries,
                exit_status=each.exit_status,
                reason=each.reason,
                log=f"{logs}/{each.log}" if each.log else None,
                question=each.question or None,
                question_text=asked[each.id].text if each.id in asked else None,
                result_text=each.said.text if each.said else "",
                cost=each.said.cost if each.said else None,
            )
        )
    return rows


def _reasons(found: WorkBatch) -> Iterator[tuple[CommandStatus, str]]:
    """Each command, and why it stands as it does, for people."""
    work, commands = found.standing.work, found.standing.commands
    needed, awaited = _wanted(work, "needs"), _wanted(work, "after")
    states = {each.id: each.state for each in commands}
    closed = _closed_now(found.standing.closed)
    asked = {each.task: each for each in open_questions(found)}
    for each in commands:
        wanted = (*needed.get(each.id, ()), *awaited.get(each.id, ())) if each.state is CommandState.PENDING else ()
        waits = [on for on in wanted if not _has_ended(states[on])]
        if each.state is CommandState.READY and each.round == each.ended and closed:
            pools = {pool: closed[pool] for pool in work.policy(each.id).pools if pool in closed}
            yield each, ", ".join(closed_texts(pools))
        else:
            yield each, _why(each, waits, asked.get(each.id), is_expired=found.standing.is_expired)


def _wanted(work: Work, kind: EdgeKind) -> dict[CommandId, list[CommandId]]:
    """What each command is to come after, by edges of a kind."""
    found: dict[CommandId, list[CommandId]] = {}
    for edge in work.edges:
        if edge.kind == kind:
            found.setdefault(edge.task, []).append(edge.on)
    return found


def _has_ended(state: CommandState) -> bool:
    return state in (CommandState.DONE, CommandState.FAILED, CommandState.SKIPPED, CommandState.CANCELLED)


def _why(command: CommandStatus, waits: list[str], asked: OpenQuestion | None, *, is_expired: bool) -> str:
    match command.state:
        case CommandState.PENDING | CommandState.READY if command.last_stop is not None:
            starts = "it is restarted" if command.state is CommandState.READY else "`resume` restarts it"
            return f"stopped{why_stopped(command.last_stop.cause, command.last_stop.detail)}; {starts}"
        case CommandState.FAILED:
            return why_failed(command.reason, command.exit_status)
        case CommandState.SKIPPED:
            return "skipped by user" if command.cause == command.id else f"needs {command.cause}"
        case CommandState.WAITING if command.until_ns:
            return f"rate limited until {clock_time(command.until_ns)}"
        case CommandState.WAITING:
            return f"{why_failed(command.reason, command.exit_status)}; will be retried"
        case CommandState.BLOCKED if asked is not None:
            return first_line(asked.text)
        case CommandState.DONE if command.said is not None:
            return first_line(command.said.text)
        case CommandState.PENDING if waits:
            more = f" and {len(waits) - 3} more" if len(waits) > 3 else ""
            return f"waits for {', '.join(waits[:3])}{more}"
        case CommandState.PENDING if command.round > command.ended:
            return f"{_REASONS['interrupted']}; continue with `resume`"
        case CommandState.READY if command.round > command.ended:
            return f"{_REASONS['interrupted']}; it is restarted"
        case CommandState.PENDING:
            why = "the batch reached its time limit" if is_expired else "too many failures"
            return f"no new tasks are started: {why}"
        case _:
            return ""


def first_line(text: str) -> str:
    """The first line of what a command says or asks, cut where it is long."""
    text = text.partition("\n")[0]
    return text if len(text) <= _SAID_SHOWN_MAX else f"{text[:_SAID_SHOWN_MAX]}…"


def _shown(holder: HolderFile) -> str:
    return f"process {holder.pid} on {holder.host.name} since {instant(holder.since_ns)}"


def tasks_at_once(strategy: str, max_parallel: int, planned: int) -> str:
    """How many there are, and how many run at once, for people."""
    how = f"{strategy}, {max_parallel} at a time" if strategy != "serial" else "one at a time"
    return f"{count_of(planned, 'task')}, {how}"
