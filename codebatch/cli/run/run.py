"""The commands `run`, `resume` and `run-shard`, which execute tasks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from codebatch.cli.answers.run_answer import answer_run
from codebatch.cli.answers.schemas import ShardRunRow, ShardsRunAnswer
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.common_options import common_option
from codebatch.cli.framework.context import CommandContext, SourcePath, batch_option, with_common_options
from codebatch.cli.framework.work_options import (
    AttemptOutput,
    ResumeOptions,
    output_option,
    reload_option,
    trust_option,
)
from codebatch.cli.output.progress import ProgressStage
from codebatch.cli.output.records import collection_line
from codebatch.cli.run.engine_options import EngineArguments, with_engine_options
from codebatch.coordinator.analysis.progress_counter import RunPhase, RunProgress
from codebatch.errors import InvalidInput
from codebatch.model.text.quantities import count_text, human_bytes
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.runs import resume as continuing
from codebatch.operations.runs.collection import CollectionResult
from codebatch.operations.runs.execution import ExecutionSettings, Listener, RunAction
from codebatch.store.batches.batch_directory import BatchDir, is_work

if TYPE_CHECKING:
    from codebatch.coordinator.engines.ports import EngineProgress
    from codebatch.operations.project.project_snapshot import ProjectSnapshot
    from codebatch.operations.runs.run_request import RunArguments

COLLECTED_SHOWN_MAX = 5

_ACTION_TEXTS: dict[RunAction, str] = {
    "new": "new",
    "resumed": "resumed",
    "joined": "joined: another process is already running it",
    "up to date": "up to date, nothing to do",
    "already ended": "ended before, with failures",
}


class RunListener(Listener):
    """A listener that reports the progress of a run on standard error."""

    def __init__(self, context: CommandContext) -> None:
        self._context = context

    def note(self, text: str) -> None:
        self._context.note(text)

    def phase(self, phase: RunPhase, done: int = 0, planned: int = 0, unit: str = "files") -> None:
        self._context.phase(phase, done, planned, unit)

    def frozen(self, frozen: ProjectSnapshot) -> None:
        how = "unchanged" if frozen.read_files == 0 else f"{frozen.read_files:,} read"
        size = f"{count_text(frozen.files, 'file')}, {human_bytes(frozen.size_bytes)}"
        self._context.detail(f"snapshot {frozen.snapshot.id}: {size} ({how})")

    def chosen(self, batch: BatchDir, action: RunAction) -> None:
        self._context.use_store_of(batch)
        note = self.note if action == "joined" else self._context.detail
        note(f"batch {batch.id}: {_ACTION_TEXTS[action]}")

    def update(self, progress: RunProgress) -> None:
        planned, done = progress.results_planned, progress.results_done
        unfinished = [task for task, count in progress.planned.items() if progress.done[task] < count]
        has_last_only = planned - done <= len(unfinished)
        parts = [f"{progress.records:,} records"] if progress.records else []
        parts += [f"{progress.failures:,} failed"] if progress.failures else []
        parts += unfinished if has_last_only else []
        stage = ProgressStage(
            "running",
            done,
            planned,
            "results",
            more=", ".join(parts),
            is_even=not has_last_only,
            share=progress.work_done,
        )
        self._context.display.show_stage(stage)

    def detail(self, text: str) -> None:
        self._context.detail(text)

    def parts(self, engine: str, progress: EngineProgress) -> None:
        more = f"{count_text(progress.parts, 'part')} on {engine}, {count_text(progress.slots, 'slot')}"
        share = progress.seconds_done / progress.seconds_planned if progress.seconds_planned else 1.0
        stage = ProgressStage(
            "running", progress.shards_done, progress.shards_planned, "shards", more=more, share=share
        )
        self._context.display.show_stage(stage)

    def collected(self, collected: CollectionResult) -> None:
        removed = (*collected.batches, *collected.snapshots)
        more = f" and {len(removed) - COLLECTED_SHOWN_MAX:,} more" if len(removed) > COLLECTED_SHOWN_MAX else ""
        named = f": {', '.join(removed[:COLLECTED_SHOWN_MAX])}{more}" if removed else ""
        self.note(f"{collection_line(collected)}{named}")


def with_execution_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options of commands that execute tasks. The command receives them as one argument, `execution`."""

    @common_option("jobs")
    @common_option("file-seconds")
    @common_option("memory-mb")
    @common_option("take-over")
    @functools.wraps(function)
    def wrapped(
        take_over: bool, jobs: int | None, file_seconds: float | None, memory_mb: int | None, **arguments: object
    ) -> int:
        execution = ExecutionSettings(
            configuration=load_configuration(Path.cwd()),
            jobs=jobs,
            file_seconds=file_seconds,
            memory_mb=memory_mb,
            take_over=take_over,
        )
        return function(execution=execution, **arguments)

    return wrapped


@command()
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=SourcePath())
@common_option("pipeline")
@option(
    "--task",
    "task",
    metavar="NAME",
    help="Run only this task",
    details="If the task runs once per project, the tasks that it needs run too.",
)
@option("--name", metavar="NAME", help="Give the batch the name @NAME; `gc` never removes a named batch")
@option(
    "--again", "forces_rerun", is_flag=True, help="Create a new batch and run all tasks again, without cached results"
)
@option(
    "--no-cache",
    is_flag=True,
    help="Do not reuse cached results of earlier batches",
    details="If a complete batch of the same files, tasks and settings exists, nothing is run unless --again is given.",
)
@option("--no-commands", is_flag=True, help="Leave out all tasks that call a program, and custom tasks")
@common_option("include")
@common_option("exclude")
@option("--emit-ast", is_flag=True, help="Also store the syntax tree of every file")
@option("--allow-empty", is_flag=True, help="Succeed if there is no file to analyse")
@option(
    "--dry-run",
    "is_preview",
    is_flag=True,
    help="Show the tasks, tools, number of files and cached results, and run nothing",
    details="The snapshot is stored, so that the next run need not read the files again.",
)
@option(
    "--shuffle",
    "shuffle_seed",
    type=int,
    metavar="SEED",
    help="Process files in random order; the same SEED gives the same order",
    details="The order does not change the results.",
)
@option(
    "--part",
    "part",
    metavar="K/N",
    help="Run only the tasks of part K of N, and write a part file for `codebatch join`",
    details="K-L/N runs several parts. auto reads the part from the variables of an array job or parallel CI job; if "
    "they lack the number of parts, give auto/N.",
)
@option("--part-output", metavar="FILE", help="With --part: path of the part file, or a directory for it")
@with_engine_options
@common_option("batch", default_text="batch of the current files, or a new batch", help="Resume this batch")
@with_common_options
@with_execution_options
def run(
    context: CommandContext,
    execution: ExecutionSettings,
    paths: tuple[Path, ...],
    batch_reference: str | None,
    pipeline: str | None,
    task: str | None,
    name: str | None,
    forces_rerun: bool,
    no_cache: bool,
    no_commands: bool,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    emit_ast: bool,
    allow_empty: bool,
    is_preview: bool,
    shuffle_seed: int | None,
    part: str | None,
    part_output: str | None,
    engine: EngineArguments,
) -> int:
    """Analyse a project, reusing cached results.

    Analyses each PATH, by default the current directory, and shows the most important findings.

    Only files at or below each PATH are analysed and reported. The snapshot covers the whole project that contains
    PATH: the git work tree, or the nearest directory with a configuration or a store.

    The results of a run are stored as a batch. If a batch of the same files, tasks and settings exists, no new batch is
    created. If this batch is complete, nothing is run. If it was interrupted, it is resumed. If it is still running,
    this command shares the work.

    --batch resumes a batch with the files, tasks and settings that it was created with.
    """
    execution = replace(execution, shuffle_seed=shuffle_seed, reuses=not no_cache)
    execution = configure_execution(execution, no_commands=no_commands, emit_ast=emit_ast)
    source: RunArguments = (paths or (Path(),), context.store_place, execution, pipeline, task, include, exclude)
    rules = {"forces_rerun": forces_rerun, "allow_empty": allow_empty}
    unusual = {"--batch": batch_reference, "--task": task, "--emit-ast": emit_ast, "--dry-run": is_preview}
    engine.refuse({**unusual, "--shuffle": shuffle_seed, "--part": part, "--part-output": part_output})
    if part is not None or part_output is not None:
        from codebatch.cli.run.part import answer_part  # Only jobs of CI need this import.

        refused = {**unusual, "--name": name}
        return answer_part(context, source, RunListener(context), part, part_output, refused, **rules)
    if is_preview and name is not None:
        raise InvalidInput("--name cannot be used with --dry-run, because no batch is created")
    if batch_reference is None and is_preview:
        from codebatch.cli.run.preview import answer_preview

        return answer_preview(context, source, task, RunListener(context), **rules)
    if batch_reference is None:
        return _run_new(context, source, name, engine, **rules)
    options: dict[str, object] = {"PATH": paths, "--pipeline": pipeline, "--again": forces_rerun}
    options |= {"--allow-empty": allow_empty, "--include": include, "--exclude": exclude, "--dry-run": is_preview}
    options["--no-commands"] = no_commands
    return _run_planned(context, execution, batch_reference, task, name, options)


def _run_new(
    context: CommandContext,
    source: RunArguments,
    name: str | None,
    engine: EngineArguments,
    *,
    forces_rerun: bool,
    allow_empty: bool,
) -> int:
    """Run the batch of the current files and print the result. Return the exit status."""
    from codebatch.operations.runs.run import run_paths  # A planned batch does not need this import.

    paths, place, execution, pipeline, task, include, exclude = source
    result = run_paths(
        paths,
        place,
        execution,
        pipeline=pipeline,
        task=task,
        name=name,
        include=include,
        exclude=exclude,
        forces_rerun=forces_rerun,
        allow_empty=allow_empty,
        opens_engine=engine.executor(),
        listener=RunListener(context),
    )
    return answer_run(context, result)


def _run_planned(
    context: CommandContext,
    execution: ExecutionSettings,
    reference: str,
    task: str | None,
    name: str | None,
    options: Mapping[str, object],
) -> int:
    """Run an existing batch and print the result. Return the exit status.

    `options` are the values of options that cannot be used with --batch.
    """
    refuse_options_with_batch([option for option, value in options.items() if value])
    store, batch = context.batch(reference)
    return answer_run(context, continuing.run_batch(execution, store, batch, task, RunListener(context), name=name))


def configure_execution(
    execution: ExecutionSettings, *, no_commands: bool, emit_ast: bool = False
) -> ExecutionSettings:
    """Return settings with the configuration that `--no-commands` and `--emit-ast` change."""
    configuration = execution.configuration
    if no_commands:
        configuration = configuration.without_commands()
    if emit_ast:
        configuration = configuration.with_task_setting("parse", "emit_ast", True)
    return replace(execution, configuration=configuration)


def refuse_options_with_batch(options: list[str]) -> None:
    """Raise InvalidInput if one of `options` was given together with `--batch`. They apply only to a new batch."""
    if options:
        message = f"{options[0]} cannot be used with --batch, because a batch keeps its settings"
        raise InvalidInput(message, hint="plan a new batch with: codebatch run PATH")


@command()
@batch_option
@option("--force", "is_forced", is_flag=True, help="Task lists: also rerun completed tasks")
@option("--only", multiple=True, metavar="TASK", help="Task lists: retry only these failed tasks")
@option("--blocked", is_flag=True, help="Task lists: also rerun tasks whose questions have no answer yet")
@option("--wait-answers", is_flag=True, help="Task lists: keep running while a question is open")
@reload_option
@output_option
@trust_option
@with_common_options
@with_execution_options
def resume(
    context: CommandContext,
    execution: ExecutionSettings,
    batch_reference: str | None,
    is_forced: bool,
    only: tuple[str, ...],
    blocked: bool,
    wait_answers: bool,
    reloads: bool,
    output: AttemptOutput,
    is_trusted: bool,
) -> int:
    """Resume an interrupted batch and retry what failed.

    A resumed task list runs with the settings and definitions that it had when its batch was created. If the task list
    has changed since, a note lists the changed tasks; --reload uses their current definitions.

    -j, --file-seconds, --memory-mb and --take-over apply only to analyses.

    To resume a task list in a store that is given by --store or CODEBATCH_STORE, --batch is required.
    """
    store, batch = context.batch(batch_reference, "any", is_change=True)
    if is_work(batch):
        from codebatch.cli.work.work import resume_work  # Analyses do not need this import.
        from codebatch.work.control.batches import refuse_unnamed_batch

        if batch_reference is None and context.store_place.named is not None:
            refuse_unnamed_batch(batch)
        if execution != ExecutionSettings(configuration=execution.configuration):
            raise InvalidInput(
                "a batch of a task list is resumed with the settings that it was started with",
                hint="start a new batch with: codebatch work run",
            )
        wishes = ResumeOptions(
            is_forced=is_forced, only=only, blocked=blocked, wait_answers=wait_answers, reloads=reloads
        )
        return resume_work(context, store, batch, wishes, is_trusted=is_trusted, output=output)
    if is_forced or is_trusted or only or blocked or wait_answers or reloads:
        message = "--force, --trust, --only, --blocked, --wait-answers and --reload apply only to task lists"
        raise InvalidInput(message, hint=f"batch {batch.id} is an analysis")
    result = continuing.resume(execution, store, batch, RunListener(context))
    return answer_run(context, result)


@command("run-shard")
@batch_option
@option("--task", "task", metavar="NAME", required=True, help="Task to run")
@option("--shard", "prefix", metavar="PREFIX", required=True, help="Run the shards whose ID starts with PREFIX")
@with_common_options
@with_execution_options
def run_shard(
    context: CommandContext, execution: ExecutionSettings, batch_reference: str | None, task: str, prefix: str
) -> int:
    """Run one task on selected shards.

    Exit status 3 if a shard fails or is not completed.
    """
    store, batch = context.batch(batch_reference)
    result = continuing.run_shards(execution, store, batch, task, prefix)
    shards = tuple(ShardRunRow(shard_id=shard, status=state) for shard, state in result.states.items())
    states = [*result.states.items(), *((shard, "open") for shard in result.open)]
    lines = [f"{shard}  {state}" for shard, state in states]
    context.print(ShardsRunAnswer(batch_id=batch.id, shards=shards, unfinished=tuple(result.open)), lines)
    return result.signal_status or (3 if result.open or "failed" in result.states.values() else 0)
