"""The status of a batch of commands, printed as text or as JSON."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from msgspec import UNSET, UnsetType

from codebatch.cli.framework.context import CommandContext
from codebatch.cli.output.eta import eta_text
from codebatch.cli.output.tables import table_lines
from codebatch.model.text.instants import instant_text
from codebatch.model.text.quantities import count_text, human_seconds
from codebatch.model.work.event import instant_ns
from codebatch.scheduling.lifecycle import CommandState
from codebatch.store.batches.batch_directory import BatchDir, is_work
from codebatch.store.batches.holders import HolderFile
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.work.notifications import failed_notifications_text
from codebatch.work.control.batch_selection import list_directory_text
from codebatch.work.control.batches import TASKS_NAMED_MAX, WorkBatch
from codebatch.work.control.cancel import process_end_hint
from codebatch.work.control.history import OlderBatch, find_older_batch
from codebatch.work.control.list_changes import ListChanges
from codebatch.work.control.status import NOTHING_TO_DO_REASONS, iter_task_explanations, make_work_status
from codebatch.work.limit_texts import cap_text, clock_time, closed_pool_texts, silence_text

_STATES_SHOWN_LAST = (
    CommandState.FAILED,
    CommandState.BLOCKED,
    CommandState.SKIPPED,
    CommandState.CANCELLED,
    CommandState.RUNNING,
    CommandState.READY,
    CommandState.WAITING,
    CommandState.PENDING,
)


def answer_work_status(
    context: CommandContext,
    work_batch: WorkBatch,
    lines: Iterable[str],
    name: str | None = None,
    changes: ListChanges | None = None,
    older: OlderBatch | UnsetType | None = UNSET,
) -> None:
    """Print a batch of commands: its status as JSON, or the given lines.

    `name` is as in `CommandContext.print`.
    """
    context.batches.append(work_batch.batch)
    context.print(make_work_status(work_batch, changes, older) if context.as_json else None, lines, name=name)


def report_older_batch(context: CommandContext, store: StoreDir, batch: BatchDir) -> OlderBatch | UnsetType | None:
    """Report and return an older batch with tasks that are not done. Return UNSET for an analysis."""
    if not is_work(batch):
        return UNSET
    older = find_older_batch(store, batch)
    if older is not None:
        context.report(older.text)
    return older


def answer_work_summary(context: CommandContext, work_batch: WorkBatch) -> None:
    """Print the status of a batch of commands."""
    older = report_older_batch(context, work_batch.store, work_batch.batch)
    answer_work_status(context, work_batch, status_lines(work_batch), name="work-status", older=older)
    unreadable = work_batch.standing.unreadable
    for id_ in unreadable[:TASKS_NAMED_MAX]:
        context.report(
            f"damaged: the outcome of the last attempt of {id_} cannot be read; the attempt is treated as interrupted"
        )
    if len(unreadable) > TASKS_NAMED_MAX:
        more = count_text(len(unreadable) - TASKS_NAMED_MAX, "more task")
        context.report(f"damaged: the outcomes of {more} cannot be read either")
    if work_batch.standing.is_stalled:
        context.note(f"resume with: codebatch resume --batch {work_batch.batch.id}")
    report_silence(context, work_batch)


def report_silence(context: CommandContext, work_batch: WorkBatch) -> None:
    """Report that the process that runs a batch is not responding, and what to do. Otherwise, print nothing."""
    status = work_batch.standing
    if status.silent_since_ns is not None and status.coordinator is not None:
        context.report(
            f"process {status.coordinator.pid} is {silence_text(status.silent_since_ns)}: "
            f"{process_end_hint(work_batch.batch.id, status.coordinator)}"
        )


def status_lines(work_batch: WorkBatch) -> Iterator[str]:
    """Yield the status of a batch as lines."""
    status, work = work_batch.standing, work_batch.standing.work
    stalled = " (interrupted: no process runs it)" if status.is_stalled else ""
    expired = " (time limit reached)" if status.is_expired else ""
    silent = "" if status.silent_since_ns is None else f" ({silence_text(status.silent_since_ns)})"
    paused = " (paused: no new tasks are started)" if status.is_paused else ""
    at_once = f", {status.max_parallel} at once" if status.max_parallel > 1 or work.strategy != "serial" else ""
    yield f"batch     {work_batch.batch.id}"
    yield f"source    {os.path.join(list_directory_text(work_batch.store, work_batch.batch), work.source)}"
    yield f"status    {status.state.value}{stalled}{silent}{expired}{paused}"
    yield f"strategy  {work.strategy}{at_once}"
    yield f"started   {instant_text(work_batch.batch.about.created_at_ns)}"
    if work_batch.ended_ns is not None:
        yield f"ended     {instant_text(work_batch.ended_ns)}"
    if (eta := work_batch.eta) is not None:
        blocked = status.counts.get(CommandState.BLOCKED.value, 0)
        text = eta_text(eta.seconds, unknown=eta.unknown, blocked=blocked, is_paused=status.is_paused)
        yield f"left      {text.replace(' left', '', 1)}"
    for text in closed_pool_texts(status.closed, status.by_hours):
        yield f"waits     {text}"
    for cap in status.caps:
        yield f"limit     {cap_text(cap, work.limits_or_none.cost_unit)}"
    if status.unknown_cost_count:
        yield f"cost      unknown for {count_text(status.unknown_cost_count, 'attempt')}, see: codebatch help limits"
    if status.coordinator is not None:
        yield f"runner    {_holder_text(status.coordinator)}"
    elif status.workers:
        yield "runner    none: running tasks will finish"
    if (unapplied := work_batch.unapplied).tasks:
        yield f"changes   {unapplied.text} not applied: codebatch changes --batch {work_batch.batch.id}"
    notifications = work_batch.notifications
    if notifications.failed:
        at = clock_time(instant_ns(notifications.failed[-1].at))
        yield f"notify    {at} {failed_notifications_text(notifications.failed)}"
    if notifications.is_pending:
        yield f"notify    not delivered yet: codebatch resume --batch {work_batch.batch.id}"
    titles = work.titles
    columns = ("state", "task", "title", *(() if status.cost is None else ("cost",)), "reason")
    cells = (
        (
            command.state.lower(),
            command.id,
            titles.get(command.id) or "-",
            *(() if status.cost is None else ("-" if command.cost is None else f"{command.cost:g}",)),
            why or "-",
        )
        for command, why in iter_task_explanations(work_batch, work_batch.unrecorded, frozenset(unapplied.unchanged))
    )
    yield from table_lines(cells, columns)
    yield f"Summary: {status_summary(work_batch)}"


def end_line(work_batch: WorkBatch, seconds: float) -> str:
    """Return the result of a run as text: `PARTIAL: 2 of 3 done (67%), 1 failed, in 4m 18s`."""
    return f"{work_batch.standing.state.value}: {status_summary(work_batch)}, in {human_seconds(seconds)}"


def status_summary(work_batch: WorkBatch) -> str:
    """Return the number of done tasks, and the number of tasks in each other state, as text."""
    counts, planned = work_batch.standing.counts, len(work_batch.standing.commands)
    done = counts.get(CommandState.DONE.value, 0)
    other_states = [
        f"{counts[state.value]:,} {state.value.lower()}" for state in _STATES_SHOWN_LAST if state.value in counts
    ]
    unneeded = sum(
        command.state is CommandState.DONE and command.reason in NOTHING_TO_DO_REASONS
        for command in work_batch.standing.commands
    )
    if unneeded:
        other_states.insert(0, f"{unneeded:,} of them with nothing to do")
    if unchanged := work_batch.unapplied.unchanged:
        other_states.insert(0, f"{len(unchanged):,} of them changed nothing")
    unit = work_batch.standing.work.limits_or_none.cost_unit
    cost = [] if work_batch.standing.cost is None else [f"cost {work_batch.standing.cost:g} {unit}".rstrip()]
    caps = [cap_text(cap, unit) for cap in work_batch.standing.caps]
    return ", ".join(
        [f"{done:,} of {planned:,} done ({100 * done // planned if planned else 100}%)", *other_states, *cost, *caps]
    )


def _holder_text(holder: HolderFile) -> str:
    return f"process {holder.pid} on {holder.host.name} since {instant_text(holder.since_ns)}"


def parallelism_text(strategy: str, max_parallel: int, planned: int) -> str:
    """Return as text how many tasks there are, and how many run at the same time."""
    number = f"{max_parallel} at a time" if max_parallel > 1 or strategy != "serial" else "one at a time"
    return ", ".join((count_text(planned, "task"), *([strategy] if strategy != "serial" else []), number))
