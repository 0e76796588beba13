"""The commands `work retry`, `skip`, `pause`, `unpause`, `set`, `add` and `attempts`. They change and show a batch."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from codebatch.cli.answers.trust import explaining_untrusted_commands
from codebatch.cli.answers.work_progress import WorkProgressListener
from codebatch.cli.answers.work_result import answer_work_run
from codebatch.cli.answers.work_status import answer_work_status, report_silence, status_summary
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.completion import complete_command
from codebatch.cli.framework.context import CommandContext, SourcePath, with_common_options, work_batch_option
from codebatch.cli.framework.read_report import explain_option
from codebatch.cli.framework.work_options import (
    AttemptOutput,
    live_batch_option,
    output_option,
    reload_option,
    trust_option,
)
from codebatch.cli.output.tables import table_lines
from codebatch.cli.work.settings import parse_changes
from codebatch.errors import InvalidInput
from codebatch.model.outcome import CommandReport
from codebatch.model.text.instants import instant_text
from codebatch.model.text.quantities import human_bytes, human_seconds
from codebatch.work.additions import add_tasks
from codebatch.work.control import requests, run
from codebatch.work.control.attempts import AttemptInfo, list_attempts
from codebatch.work.control.batches import WorkBatch, load_work_batch, refuse_unnamed_batch
from codebatch.work.control.list_changes import warn_about_changes
from codebatch.work.control.status import attempt_stop_text, failure_reason_text, first_line
from codebatch.work.definition.selection import abbreviated_ids

tasks_argument = click.argument("tasks", metavar="TASK...", nargs=-1, required=True, shell_complete=complete_command)


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt of a task.

    - `outcome`: `result`, `failed`, `blocked`, `cancelled`, `stopped`, `interrupted`, `running` or `unreadable`.
    - `reason`: for a stopped attempt, `signal`, `timeout`, `failure` or `cancel`.
    - `detail`: for a stopped attempt, the signal, or the task that failed.
    - `try_number`: the number of the try, counted from 1.
    - `result_text`, `cost`, `session`: values from the JSON output of the command.
    - `notes`: the limit that ended the attempt, and what was ignored, cut or replaced by a default.

    Values that are recorded only in journals are null if the journals no longer exist.
    """

    task: str
    round: int
    try_number: int | None
    started_at: str | None
    seconds: float | None
    outcome: str
    reason: str | None
    detail: str
    exit_status: int | None
    memory_peak_bytes: int | None
    result_text: str
    cost: float | None
    session: str
    notes: tuple[str, ...]
    log: str


@command()
@tasks_argument
@work_batch_option
@option("--dependents", is_flag=True, help="Also rerun the tasks that depend on the given tasks")
@option("--no-run", is_flag=True, help="Do not resume the batch")
@reload_option
@output_option
@trust_option
@with_common_options
def retry(
    context: CommandContext,
    tasks: tuple[str, ...],
    batch_reference: str | None,
    dependents: bool,
    no_run: bool,
    reloads: bool,
    output: AttemptOutput,
    is_trusted: bool,
) -> int:
    """Run tasks again, whatever their outcome.

    If other tasks were skipped because TASK failed or was skipped, they run too. A task that was skipped because of
    another task runs only if that task runs too. Each TASK gets its full number of tries again. If the batch is not
    running, this command resumes it.
    """
    if no_run and reloads:
        raise InvalidInput(
            "--reload cannot be used with --no-run",
            hint="omit --reload; then reload the task list with: codebatch resume --reload",
        )
    store, batch = context.batch(batch_reference, "work", is_change=True)
    if batch_reference is None and context.store_place.named is not None and not no_run:
        refuse_unnamed_batch(batch)
    # This check must precede the request: a running batch would start the task with its old definition at once.
    if reloads:
        run.refuse_running(load_work_batch(store, batch))
    work_batch = requests.retry_tasks(store, batch, tasks, dependents=dependents)
    listener = WorkProgressListener(context, output)
    if work_batch.standing.coordinator is not None or no_run:
        if not no_run:
            warn_about_changes(work_batch, listener)
        opened = [command.id for command in requests.find_commands(work_batch, tasks)]
        return _answer_work_control(context, work_batch, f"to be run again: {abbreviated_ids(opened)}")
    result = explaining_untrusted_commands(
        context, lambda: run.continue_batch(store, batch, reloads=reloads, is_trusted=is_trusted, listener=listener)
    )
    return answer_work_run(context, result)


@command()
@tasks_argument
@option("--as-done", is_flag=True, help="Treat the tasks as done, so that tasks that need them can run")
@live_batch_option
@with_common_options
def skip(context: CommandContext, tasks: tuple[str, ...], as_done: bool, batch_reference: str | None) -> int:
    """Skip tasks, and terminate them if they are running.

    Tasks that need a skipped task are skipped too. `codebatch work retry` undoes this.
    """
    store, batch = context.live_batch(batch_reference)
    work_batch, skipped = requests.skip_tasks(store, batch, tasks, as_done=as_done)
    return _answer_work_control(context, work_batch, f"{'done' if as_done else 'skipped'}: {abbreviated_ids(skipped)}")


@command()
@live_batch_option
@with_common_options
def pause(context: CommandContext, batch_reference: str | None) -> int:
    """Start no more tasks until `work unpause` or `resume`.

    Running tasks continue.
    """
    return _answer_work_control(context, requests.pause_batch(*context.live_batch(batch_reference)), "paused")


@command()
@live_batch_option
@with_common_options
def unpause(context: CommandContext, batch_reference: str | None) -> int:
    """Start tasks again after `work pause`."""
    return _answer_work_control(context, requests.unpause_batch(*context.live_batch(batch_reference)), "unpaused")


@command("set")
@click.argument("settings", metavar="[TASK]... SETTING=VALUE...", nargs=-1, required=True)
@live_batch_option
@with_common_options
def change(context: CommandContext, settings: tuple[str, ...], batch_reference: str | None) -> int:
    """Change limits of a batch, or settings of its tasks.

    max-parallel=N sets the maximum number of tasks that run at once, pool.NAME=N the size of a resource pool.
    cost-max=N, attempts-max=N and deadline=TIME change the limits of the list, pool.NAME.cost-max=N and
    pool.NAME.attempts-max=N those of a pool.

    With TASK, timeout=DURATION (90, 90s, 10m, 1h30m), retries=N, priority=N, cost-max=N and attempts-max=N change each
    TASK. The timeout applies to attempts that start later. Retries also apply to the failure of a running attempt, but
    a task that has failed stays failed. The values hold for the rest of the batch, also after --reload. Running tasks
    continue.
    """
    changes = parse_changes(settings)
    store, batch = context.live_batch(batch_reference)
    work_batch, texts = requests.change_batch(store, batch, changes)
    for text in texts if context.as_json else ():
        context.note(text)
    return _answer_work_control(context, work_batch, f"set {'; '.join(texts)}")


@command("add")
@click.argument("paths", metavar="[FILE]...", nargs=-1, type=SourcePath())
@option(
    "--task", "tasks", multiple=True, metavar="NAME=COMMAND", help="Add a task that runs a shell command (repeatable)"
)
@option("--needs", multiple=True, metavar="TASK", help="With --task: a task that must succeed first (repeatable)")
@option("--command", metavar="COMMAND", help="Shell command for tasks of FILE that define none")
@live_batch_option
@with_common_options
def add(
    context: CommandContext,
    paths: tuple[Path, ...],
    tasks: tuple[str, ...],
    needs: tuple[str, ...],
    command: str | None,
    batch_reference: str | None,
) -> int:
    """Add tasks to a batch, also while it runs.

    FILE is a task list, without settings for the whole list: limits, pools and all other settings of the batch apply.
    The tasks may need tasks of the batch. If the batch is not running or has ended, `codebatch resume` runs them.

    Either all tasks are added or none. Adding a task again has no effect. Exit status 2 if the batch has another task
    of the same name.
    """
    if not paths and not tasks:
        raise InvalidInput("no tasks are given", hint="give a FILE with tasks, or --task NAME=COMMAND")
    if needs and not tasks:
        raise InvalidInput("--needs can only be used with --task", hint="in a FILE, set `needs` of each task")
    store, batch = context.live_batch(batch_reference)
    result = add_tasks(store, batch, paths, tasks, needs, here=Path.cwd(), command=command)
    for text in result.warnings:
        context.report(text)
    kinds = {"added": result.added, "already there": result.existing}
    texts = [f"{kind}: {abbreviated_ids(ids)}" for kind, ids in kinds.items() if ids]
    for text in (*result.notes, *(texts if context.as_json else ())):
        context.note(text)
    return _answer_work_control(context, result.work_batch, "; ".join(texts))


def _answer_work_control(context: CommandContext, work_batch: WorkBatch, change: str) -> int:
    state = "" if work_batch.standing.is_stalled else f"{work_batch.standing.state.value}: "
    answer_work_status(context, work_batch, [f"{change}; {state}{status_summary(work_batch)}"])
    report_silence(context, work_batch)
    if work_batch.standing.coordinator is None:
        context.note(f"this batch is not running; resume it with: codebatch resume --batch {work_batch.batch.id}")
    return 0


@command()
@click.argument("tasks", metavar="[TASK]...", nargs=-1, shell_complete=complete_command)
@work_batch_option
@explain_option
@with_common_options
def attempts(context: CommandContext, tasks: tuple[str, ...], batch_reference: str | None) -> None:
    """List the attempts of tasks.

    Shows when each attempt of TASK began, how long it took and how it ended. Without TASK, shows the attempts of all
    tasks.
    """
    work_batch = load_work_batch(*context.batch(batch_reference, "work"))
    attempt_infos = list_attempts(work_batch, tasks)
    context.batches.append(work_batch.batch)
    columns = ("task", "attempt", "try", "started", "duration", "outcome", "reason", "memory", "cost", "message")
    columns_count = len(columns) if any(info.report for info in attempt_infos) else columns.index("cost")
    rows = (_attempt_cells(info)[:columns_count] for info in attempt_infos)
    context.print([_attempt_row(info) for info in attempt_infos], table_lines(rows, columns[:columns_count]))
    if not attempt_infos:
        context.note("no task has started")


def _attempt_cells(info: AttemptInfo) -> tuple[str, ...]:
    report = info.report or CommandReport()
    return (
        info.task,
        str(info.round),
        "-" if info.number is None else str(info.number),
        "-" if info.began_ns is None else instant_text(info.began_ns),
        "-" if info.seconds is None else human_seconds(info.seconds),
        "limited" if info.reason == "limited" else "done" if info.ended == "result" else info.ended,
        _attempt_reason_text(info) or "-",
        "-" if info.memory_peak_bytes is None else human_bytes(info.memory_peak_bytes),
        "-" if report.cost is None else f"{report.cost:g}",
        first_line(report.text) or "-",
    )


def _attempt_reason_text(info: AttemptInfo) -> str:
    if info.ended == "stopped" and info.stopped is not None:
        return f"stopped{attempt_stop_text(info.stopped.cause, info.stopped.detail)}"
    return "; ".join(filter(None, (failure_reason_text(info.reason, info.exit_status), *info.notes)))


def _attempt_row(info: AttemptInfo) -> AttemptRow:
    report = info.report or CommandReport()
    return AttemptRow(
        task=info.task,
        round=info.round,
        try_number=info.number,
        started_at=None if info.began_ns is None else instant_text(info.began_ns),
        seconds=info.seconds,
        outcome=info.ended,
        reason=info.reason if info.stopped is None else info.stopped.cause,
        detail="" if info.stopped is None else info.stopped.detail,
        exit_status=info.exit_status,
        memory_peak_bytes=info.memory_peak_bytes,
        result_text=report.text,
        cost=report.cost,
        session=report.session,
        notes=info.notes,
        log=str(info.log),
    )
