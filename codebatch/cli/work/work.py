"""The command group `work`: task lists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, get_args

import click
from msgspec.structs import asdict

from codebatch.cli.answers.dry_run import answer_rehearsal
from codebatch.cli.answers.trust import explaining_untrusted_commands
from codebatch.cli.answers.work_analysis import AnalysisForm, answer_work_analysis
from codebatch.cli.answers.work_progress import WorkProgressListener
from codebatch.cli.answers.work_result import answer_work_run, report_all_done
from codebatch.cli.answers.work_status import answer_work_status, report_older_batch
from codebatch.cli.framework.commands import option
from codebatch.cli.framework.context import CommandContext, with_common_options
from codebatch.cli.framework.groups import CommandGroup, group_with_common_options
from codebatch.cli.framework.work_lists import TaskListOptions, with_task_list_options
from codebatch.cli.framework.work_options import AttemptOutput, ResumeOptions, output_option, trust_option
from codebatch.cli.work import control, log, questions
from codebatch.errors import InvalidInput, NothingLeft
from codebatch.model.work.work_batch import RETRIES_MAX, FailureAction, HaltMode, Strategy
from codebatch.operations.project.configuration import load_configuration
from codebatch.scheduling.lifecycle import BatchState
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.system.clock import wall_ns
from codebatch.work.control import run
from codebatch.work.control.detached_run import run_detached
from codebatch.work.control.dry_run import dry_run
from codebatch.work.definition.limits import next_instant_ns
from codebatch.work.definition.settings import WorkOptions

F = TypeVar("F", bound=Callable[..., object])

_parallel_option = option(
    "-j", "--max-parallel", metavar="N", type=click.IntRange(min=1), help="Maximum number of tasks that run at once"
)
_strategy_option = option(
    "--strategy",
    metavar="STRATEGY",
    type=click.Choice(get_args(Strategy)),
    help="Order of tasks: serial, parallel or auto",
    details="With auto, tasks run in parallel, and dependencies are inferred from the texts of the tasks.",
)


@click.group(cls=CommandGroup)
@group_with_common_options
def work() -> None:
    """Run task lists, show their logs and answer their questions.

    A task list is a file of commands with dependencies, such as builds, migrations or other long jobs. It can be
    resumed after any interruption. `status`, `follow`, `resume` and `cancel` work on task lists too.
    """


@work.command("run")
@click.argument("tasks", metavar="[TASK]...", nargs=-1)
@with_task_list_options
@_parallel_option
@_strategy_option
@option(
    "--on-failure",
    metavar="ACTION",
    type=click.Choice(get_args(FailureAction)),
    default_text="skip-dependents",
    help="After a failure: skip-dependents, continue or stop",
)
@option(
    "--failures-max",
    metavar="N",
    type=click.IntRange(min=1),
    default_text="1",
    help="With --on-failure stop or --halt: number of failures after which the batch stops",
)
@option(
    "--halt",
    metavar="WHEN",
    type=click.Choice(get_args(HaltMode)),
    help="Stop the batch after a failure: let running tasks finish (soon) or terminate them (now)",
)
@option(
    "--timeout",
    type=float,
    metavar="SECONDS",
    help="Time limit of the whole batch",
    details="After `codebatch resume`, the time limit starts again.",
)
@option("--retry", metavar="N", type=click.IntRange(0, RETRIES_MAX), help="Retry each failed task up to N times")
@option("--wait-answers", is_flag=True, help="Keep running while a question is open")
@option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="Set an environment variable for every task",
    details="Without VALUE, the value is taken from your environment and is not stored.",
)
@option(
    "--at",
    metavar="TIME",
    help="Start no task before TIME",
    details="TIME is a time of day, for example 22:00, or an ISO time. The batch is created now.",
)
@option("--parallel-batches", "is_parallel", is_flag=True, help="Run even if another batch runs in the same directory")
@option(
    "--yes",
    "is_sure",
    is_flag=True,
    help="Accept inferred dependencies without asking",
    details="With -q, inferred dependencies are not listed either.",
)
@option("--analyze", "is_looked_at", is_flag=True, help="Show the output of `codebatch work analyze`, and run nothing")
@option("--dry-run", "is_rehearsed", is_flag=True, help="Show when each task would start, and run nothing")
@option("--detach", "is_detached", is_flag=True, help="Run in the background and print the batch ID")
@output_option
@trust_option
@with_common_options
def work_run(
    context: CommandContext,
    tasks: tuple[str, ...],
    paths: tuple[Path, ...],
    max_parallel: int | None,
    strategy: Strategy | None,
    on_failure: FailureAction | None,
    failures_max: int | None,
    halt: HaltMode | None,
    timeout: float | None,
    listing: TaskListOptions,
    retry: int | None,
    wait_answers: bool,
    variables: tuple[str, ...],
    at: str | None,
    is_parallel: bool,
    is_sure: bool,
    is_looked_at: bool,
    is_rehearsed: bool,
    is_detached: bool,
    output: AttemptOutput,
    is_trusted: bool,
) -> int:
    """Run the tasks of a task list in dependency order.

    Runs each TASK and the tasks that it needs, by default all tasks. Each run is stored as a new batch. Options
    override the settings in the file.

    `codebatch resume` continues a batch if it was interrupted or a task failed. Exit status 3 if a task is not done.
    """
    options = WorkOptions(
        tasks=tasks,
        max_parallel=max_parallel,
        strategy=strategy,
        on_failure=on_failure,
        failures_max=failures_max,
        halt=halt,
        timeout=timeout,
        retry=retry,
        wait_answers=wait_answers,
        env=variables,
        at_ns=0 if at is None else _parse_start(at),
        infer_command=not (is_looked_at or is_rehearsed),
        **listing,
    )
    if is_looked_at:
        answer_work_analysis(context, run.list_files(paths, options, context.store_place), "text", None)
        return 0
    listener = WorkProgressListener(context, output, is_sure=is_sure)
    place, keep = context.store_place, load_configuration(Path.cwd()).keep
    try:
        if is_rehearsed:
            answer_rehearsal(context, dry_run(paths, options, place))
            return 0
        if not is_detached:
            result = run.run_files(
                paths, options, place, keep=keep, is_parallel=is_parallel, is_trusted=is_trusted, listener=listener
            )
            return answer_work_run(context, result)
        work_batch = run_detached(
            paths, options, place, is_parallel=is_parallel, is_trusted=is_trusted, listener=listener
        )
    except NothingLeft as left:
        return report_all_done(context, left)
    answer_work_status(context, work_batch, [work_batch.batch.id])
    context.note(f"follow it with: codebatch follow --batch {work_batch.batch.id}")
    return 0


def _parse_start(text: str) -> int:
    """Return the time of `--at` in ns. Raises InvalidInput if it is not a time, or in the past."""
    at_ns = next_instant_ns(text, "", wall_ns())
    if at_ns is None:
        raise InvalidInput(f"--at {text!r} is not a time", hint="for example: --at 22:00")
    if at_ns <= wall_ns():
        raise InvalidInput(f"--at {text!r} is in the past", hint="for example: --at 22:00")
    return at_ns


@work.command("analyze")
@click.argument("tasks", metavar="[TASK]...", nargs=-1)
@with_task_list_options
@_parallel_option
@_strategy_option
@option(
    "--format",
    "form",
    metavar="FORMAT",
    type=click.Choice(get_args(AnalysisForm)),
    default="text",
    show_default=True,
    help="Output format: text, json, dot or mermaid",
)
@option("--run-infer", is_flag=True, help="Run the command in the setting `infer`, which infers dependencies")
@option(
    "--write",
    "written",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write inferred dependencies to a new TOML file",
)
@with_common_options
def work_analyze(
    context: CommandContext,
    tasks: tuple[str, ...],
    paths: tuple[Path, ...],
    listing: TaskListOptions,
    max_parallel: int | None,
    strategy: Strategy | None,
    form: AnalysisForm,
    run_infer: bool,
    written: Path | None,
) -> None:
    """Show the dependencies and the critical path of a task list.

    Lists the dependencies of each TASK with the reason for each dependency. Estimates the total time for different
    numbers of parallel tasks.

    Nothing is run. A store is needed only for --unfinished and --blocked. Exit status 2 if dependencies form a cycle.
    """
    options = WorkOptions(tasks=tasks, max_parallel=max_parallel, strategy=strategy, infer_command=run_infer, **listing)
    answer_work_analysis(context, run.list_files(paths, options, context.store_place), form, written)


for each in (
    log.log,
    questions.questions,
    questions.answer,
    control.retry,
    control.skip,
    control.pause,
    control.unpause,
    control.change,
    control.add,
    control.attempts,
):
    work.add_command(each)


def resume_work(
    context: CommandContext,
    store: StoreDir,
    batch: BatchDir,
    wishes: ResumeOptions,
    *,
    is_trusted: bool,
    output: AttemptOutput,
) -> int:
    """Resume a batch of commands, and print the result. Return the exit status."""
    listener = WorkProgressListener(context, output)
    result = explaining_untrusted_commands(
        context,
        lambda: run.resume_work(
            store,
            batch,
            **asdict(wishes),
            is_trusted=is_trusted,
            listener=listener,
        ),
    )
    if result.standing.state is BatchState.COMPLETED and not result.seconds:
        context.note("all tasks are done; rerun them with --force")
    return answer_work_run(context, result, name="work-status", older=report_older_batch(context, store, batch))
