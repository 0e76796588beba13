"""`run`, `resume`, `run-shard`: everything that executes."""

from __future__ import annotations

import functools
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
import msgspec

from codebatch.application.configuration import Configuration, load_configuration
from codebatch.cli.asking import rerun, shown_paths
from codebatch.cli.options import Answering, SourcePath, answering, batch_option, count_of, human_bytes
from codebatch.cli.planner import Frozen, Planner, planner_of
from codebatch.cli.show import failure_lines, summary_lines
from codebatch.coordinator.limits import Limits, default_memory_bytes
from codebatch.coordinator.loop import Scope
from codebatch.coordinator.planning import check_overrides, find_pipeline, missing_tools
from codebatch.coordinator.progress import Display, choose_display
from codebatch.coordinator.run import execute
from codebatch.engine.lifecycle import BatchState
from codebatch.errors import BatchIncomplete, InvalidInput, NothingToDo, StoreCorrupt
from codebatch.model.entry import display_path
from codebatch.model.plan import items_of
from codebatch.model.task import task_name
from codebatch.query.records import BatchRecords
from codebatch.query.standing import Standing, standing
from codebatch.query.summary import failures, summarise, worst_findings
from codebatch.snapshotting.roots import Selection, resolve_sources, select
from codebatch.snapshotting.selection import SourceRules
from codebatch.snapshotting.take import SnapshotResult, take_snapshot, takes_a_file
from codebatch.store.batches import Batch, iter_batches, projects_of_batches, resolve_batch
from codebatch.store.snapshots import load_snapshot
from codebatch.store.store import Store
from codebatch.system.clock import wall_ns
from codebatch.system.disk_usage import tree_bytes

WORST_SHOWN = 10
FAILURES_SHOWN = 20

_ACTIONS = {
    "ran": "new",
    "continued": "continued",
    "helped": "another process is at work on it; this one helps",
    "up to date": "up to date, nothing to do",
    "ended before": "ended before, with failures",
}


class RunAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What `run --json` says. `action`: `ran`, `continued`, `helped`, `up to date`, or `ended before` with failures.

    `paths` are those of the project that it was restricted to.
    """

    snapshot_id: str
    batch_id: str
    status: str
    result_digest: str | None
    files: int
    records: int
    failures: int
    seconds: float
    action: str
    store_bytes: int
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runner:
    """One execution of a batch on behalf of a command."""

    answering: Answering
    configuration: Configuration
    jobs: int
    file_seconds: float
    memory_mb: int | None
    shuffle_seed: int | None = None
    take_over: bool = False

    def execute(self, store: Store, batch: Batch, scope: Scope, display: Display) -> int:
        memory_bytes = self.memory_mb << 20 if self.memory_mb else default_memory_bytes(self.jobs)
        with store.writing():
            return execute(
                store,
                batch,
                catalogue=self.configuration.catalogue,
                jobs=self.jobs,
                limits=Limits(
                    file_seconds=self.file_seconds,
                    project_seconds=self.configuration.settings.project_seconds_max,
                    memory_bytes=memory_bytes,
                ),
                scope=replace(scope, shuffle_seed=self.shuffle_seed, take_over=self.take_over),
                watcher=display,
            )


def _running(function: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options that every execution has, as one `runner` argument in the place of `answering`."""

    @click.option("-j", "--jobs", type=click.IntRange(min=1), help="Worker processes. Default: the usable cores.")
    @click.option(
        "--file-seconds", type=click.FloatRange(min=0.01), help="Most seconds one file may take. Default: 30."
    )
    @click.option(
        "--memory-mb",
        type=click.IntRange(min=1),
        help="Most MiB a worker and its children may hold. Default: 2048, or the worker's share of what is available.",
    )
    @click.option("--take-over", is_flag=True, help="Do what processes on other hosts hold too: they are gone.")
    @functools.wraps(function)
    def wrapped(
        answering: Answering,
        take_over: bool,
        jobs: int | None,
        file_seconds: float | None,
        memory_mb: int | None,
        **arguments: object,
    ) -> int:
        if file_seconds is not None and math.isnan(file_seconds):
            raise InvalidInput("invalid value for '--file-seconds': it is no number")
        configuration = load_configuration(Path.cwd())
        runner = _Runner(
            answering=answering,
            configuration=configuration,
            jobs=jobs or configuration.jobs,
            file_seconds=file_seconds or configuration.settings.file_seconds_max,
            memory_mb=memory_mb or configuration.settings.memory_mb_max,
            take_over=take_over,
        )
        return function(runner=runner, **arguments)

    return wrapped


@click.command()
@click.argument("paths", nargs=-1, type=SourcePath())
@batch_option
@click.option("--pipeline", metavar="NAME", help="parse, analyze or full. Default: full.")
@click.option("--task", "task", metavar="NAME", help="Run this task only; one of project scope with all it needs.")
@click.option("--again", is_flag=True, help="Make a new batch even where one of the same plan is complete.")
@click.option("--include", multiple=True, metavar="PATTERN", help="Take only paths that match (gitignore syntax).")
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Leave out paths that match (gitignore syntax).")
@click.option("--emit-ast", is_flag=True, help="Store every file's syntax tree too (tasks.parse.emit_ast).")
@click.option("--allow-empty", is_flag=True, help="An empty tree is no error.")
@click.option(
    "--shuffle", "shuffle_seed", type=int, metavar="SEED", help="Work in a random order; results are the same."
)
@answering
@_running
def run(
    runner: _Runner,
    paths: tuple[Path, ...],
    batch_reference: str | None,
    pipeline: str | None,
    task: str | None,
    again: bool,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    emit_ast: bool,
    allow_empty: bool,
    shuffle_seed: int | None,
) -> int:
    """Snapshot PATHS, plan, execute and summarise; without PATHS, continue a batch as it was planned.

    The snapshot is of the project that PATHS are part of: of what was run before at or above them, or of the git work
    tree; the work and the answers are of PATHS alone.

    The same tree again is up to date and does nothing. A batch that was left open is continued; one that is running
    is helped.
    """
    began = time.monotonic()
    answering, configuration = runner.answering, runner.configuration
    if emit_ast:
        configuration = configuration.with_task_setting("parse", "emit_ast", True)
    runner = replace(runner, configuration=configuration, shuffle_seed=shuffle_seed)
    if batch_reference is not None and paths:
        raise InvalidInput("name paths or a batch, not both", hint="--batch continues a batch as it was planned")
    if not paths:
        if pipeline or again or include or exclude or allow_empty:
            raise InvalidInput("a batch is continued as it was planned", hint="plan anew with: codebatch run PATH")
        store, batch = answering.batch(batch_reference)
        if batch_reference is None and not answering.quiet:
            answering.note(f"the latest batch, as it was planned; look at its tree again with: {rerun(store, batch)}")
        return _run_batch(runner, store, batch, task, began)
    settings = configuration.settings
    # What is wrong with the arguments is said before anything is written.
    chosen = find_pipeline(pipeline or settings.pipeline, settings.tasks)
    check_overrides(configuration.catalogue, settings.tasks)
    resolve_sources(paths, None)
    if task is not None and task_name(task) not in chosen.tasks:
        raise InvalidInput(f"pipeline {chosen.name} has no task {task!r}", hint=f"one of: {', '.join(chosen.tasks)}")
    rules = SourceRules(include=include or settings.include, exclude=(*settings.exclude, *exclude))
    display = choose_display(quiet=answering.quiet)
    try:
        if not (allow_empty or answering.has_store() or takes_a_file(paths, rules)):
            raise _nothing_to_do(paths)
        store = answering.store_or_new()
        with store.writing():
            frozen = _freeze(answering, store, paths, rules, display, allow_empty=allow_empty)
            planner = planner_of(answering, configuration, store, frozen, chosen.name)
            batch, action = _find_or_make_batch(answering, planner, again=again)
        stands, _ = standing(batch)
        if action == "found":
            action = _describe_found(stands)
        answering.note(f"batch {batch.id}: {_ACTIONS[action]}")
        status = 0
        if not stands.state.is_final or stands.outputs is None:
            status = runner.execute(store, batch, _scope(batch, task), display)
            with store.writing():
                batch = _answering_one(answering, planner, batch)
    finally:
        display.close()
    return _answer(runner, store, batch, action, began, signal_status=status, is_narrow=task is not None)


@click.command()
@batch_option
@answering
@_running
def resume(runner: _Runner, batch_reference: str | None) -> int:
    """Continue a batch that was interrupted, and do again what failed in it."""
    began = time.monotonic()
    answering = runner.answering
    store, batch = answering.batch(batch_reference)
    stands, _ = standing(batch)
    if stands.state is BatchState.COMPLETED and stands.outputs is not None:
        return _answer(runner, store, batch, "up to date", began)
    display = choose_display(quiet=answering.quiet)
    try:
        status = runner.execute(store, batch, Scope(retry_failed=True), display)
    finally:
        display.close()
    return _answer(runner, store, batch, "continued", began, signal_status=status)


@click.command("run-shard")
@batch_option
@click.option("--task", "task", metavar="NAME", required=True, help="The task to run.")
@click.option("--shard", "prefix", metavar="PREFIX", required=True, help="Every shard whose id begins with this.")
@answering
@_running
def run_shard(runner: _Runner, batch_reference: str | None, task: str, prefix: str) -> int:
    """Run one task of the shards whose id begins with a prefix."""
    answering = runner.answering
    store, batch = answering.batch(batch_reference)
    scope = _scope(batch, task)
    plan = batch.plan()
    if task_name(task) in plan.project_tasks:
        raise InvalidInput(
            f"{task_name(task)} works on the project, not on shards",
            hint=f"codebatch run --batch {batch.id} --task {task}",
        )
    chosen = frozenset(shard.id for shard in plan.shards if shard.id.startswith(prefix))
    if not chosen:
        answering.print(
            {"batch_id": batch.id, "shards": [], "open": []}, [], if_none=f"no shard begins with {prefix!r}"
        )
        return 0
    display = choose_display(quiet=True)
    status = runner.execute(store, batch, Scope(tasks=scope.tasks, shards=chosen), display)
    ledger = BatchRecords(store, batch).ledger
    assert scope.tasks is not None
    states = {
        shard: "failed" if any(ledger.unsuccessful(shard, name) for name in scope.tasks) else "done"
        for shard in sorted(chosen)
        if not any(ledger.holes(shard, name) for name in scope.tasks)
    }
    left = sorted(chosen - set(states))
    answering.print(
        {"batch_id": batch.id, "shards": [{"shard_id": s, "status": v} for s, v in states.items()], "open": left},
        [f"{shard}  {state}" for shard, state in states.items()] + [f"{shard}  open" for shard in left],
    )
    return status or (3 if left or "failed" in states.values() else 0)


def _run_batch(runner: _Runner, store: Store, batch: Batch, task: str | None, began: float) -> int:
    stands, _ = standing(batch)
    scope = _scope(batch, task)
    if stands.state.is_final and stands.outputs is not None:
        return _answer(runner, store, batch, _describe_found(stands), began)
    action = "ran" if stands.state is BatchState.PENDING else _describe_found(stands)
    display = choose_display(quiet=runner.answering.quiet)
    try:
        status = runner.execute(store, batch, scope, display)
    finally:
        display.close()
    return _answer(runner, store, batch, action, began, signal_status=status, is_narrow=task is not None)


def _freeze(
    answering: Answering,
    store: Store,
    paths: tuple[Path, ...],
    rules: SourceRules,
    display: Display,
    *,
    allow_empty: bool,
) -> Frozen:
    """The snapshot of the project that paths are of, and the part of it that they name."""
    selection = select(paths, store.root, projects_of_batches(store))
    taken, files, size = _snapshot(store, selection, rules)
    for note in taken.notes:
        answering.note(note)
    if selection.paths:
        project, parts = (", ".join(map(display_path, each)) for each in (selection.projects, selection.paths))
        answering.note(f"project {project}, of it: {parts}")
    if files == 0 and not allow_empty:
        raise _nothing_to_do(paths)
    how = "unchanged" if taken.read_files == 0 else f"{taken.read_files:,} read"
    display.phase(f"snapshot {taken.snapshot_id}: {count_of(files, 'file')}, {human_bytes(size)} ({how})")
    return Frozen(
        snapshot_id=taken.snapshot_id,
        digest=taken.digest,
        sources=selection.projects,
        paths=selection.paths,
        stat_cache=taken.stat_cache,
    )


def _nothing_to_do(paths: tuple[Path, ...]) -> NothingToDo:
    return NothingToDo(
        f"no file in {', '.join(map(str, paths))} is to be taken",
        hint="see what is left out with: codebatch files --why PATH; or pass --allow-empty",
    )


def _snapshot(store: Store, selection: Selection, rules: SourceRules) -> tuple[SnapshotResult, int, int]:
    """A snapshot, and how many files and bytes of it are to be worked on.

    What was named and is ignored in its project is taken all the same.
    """

    def take(roots: Sequence[bytes]) -> SnapshotResult:
        named = [Path(os.fsdecode(root)) for root in roots]
        return take_snapshot(store.files, store.root, named, rules, now=lambda: wall_ns() / 1e9)

    taken = take(selection.sources.roots)
    if not selection.paths:
        return taken, taken.files, taken.bytes
    entries = load_snapshot(store.files, store.root, taken.snapshot_id).entries
    ignored = [path for path in selection.paths if not items_of(entries, [path])]
    if ignored:
        base = selection.sources.base
        taken = take([base, *(os.path.join(base, path) for path in ignored)])
        entries = load_snapshot(store.files, store.root, taken.snapshot_id).entries
    items = items_of(entries, selection.paths)
    return taken, len(items), sum(item.size for item in items)


def _find_or_make_batch(answering: Answering, planner: Planner, *, again: bool) -> tuple[Batch, str]:
    """The batch of the same plan, `found`, or a new one, `ran`.

    It is looked for before planning, which takes time, and again where nobody else can make one: several that begin at
    once share the batch of whoever was first.
    """

    def known() -> Batch | None:
        return None if again else _find_batch(answering, planner)

    if found := known():
        return _answering_one(answering, planner, found), "found"
    plan = planner.plan()
    with planner.store.making_batch():
        if found := known():
            return found, "found"
        return planner.make(plan), "ran"


def _answering_one(answering: Answering, planner: Planner, batch: Batch) -> Batch:
    """The batch that answers for the tree that was frozen: this one of its plan, or one that adopts its results.

    One that is not final yet answers when it is.
    """
    if planner.is_answered_by(batch):
        return batch
    with planner.store.making_batch():
        batch = _find_batch(answering, planner) or batch  # Another may have adopted it meanwhile.
        stands, _ = standing(batch)
        is_over = stands.state.is_final and stands.outputs is not None and not stands.holders
        if is_over and not planner.is_answered_by(batch):
            batch = planner.adopt(batch)
    return batch


def _note_missing_tools(runner: _Runner, records: BatchRecords, languages: Mapping[str, int]) -> None:
    """Say which files have the language-neutral part only, for want of a grammar that could be installed."""
    missing = sorted(missing_tools(runner.configuration.catalogue, records.plan.tasks).keys() & languages.keys())
    if missing:
        told = ", ".join(f"{language} ({count_of(languages[language], 'file')})" for language in missing)
        runner.answering.note(f"no grammar for {told}: pip install 'codebatch[languages]'")


def _find_batch(answering: Answering, planner: Planner) -> Batch | None:
    """The latest batch of the same plan that can be read, of whatever place: equal trees have equal results."""
    wanted = (planner.digest, planner.pipeline)
    for batch in iter_batches(planner.store, answering.note):
        if (batch.about.plan_digest, batch.about.pipeline) == wanted:
            try:
                standing(batch)
            except StoreCorrupt as error:
                answering.note(f"{batch.id} is passed over: {error.message}")
                continue
            return batch
    return None


def _describe_found(stands: Standing) -> str:
    if stands.state.is_final and stands.outputs is not None:
        return "up to date" if stands.state is BatchState.COMPLETED else "ended before"
    return "helped" if stands.holders else "continued"


def _scope(batch: Batch, task: str | None) -> Scope:
    if task is None:
        return Scope()
    plan = batch.plan()
    name = task_name(task)
    if name not in plan.task_names:
        raise InvalidInput(f"the batch has no task {task!r}", hint=f"one of: {', '.join(plan.task_names)}")
    return Scope(tasks=plan.needed_for(name) if name in plan.project_tasks else frozenset({name}))


def _answer(
    runner: _Runner,
    store: Store,
    batch: Batch,
    action: str,
    began: float,
    *,
    signal_status: int = 0,
    is_narrow: bool = False,
) -> int:
    """Say how it went; returns the exit status."""
    answering = runner.answering
    stands, _ = standing(batch)
    records = BatchRecords(store, batch)
    summary = summarise(records)
    is_over = stands.state.is_final
    answer = RunAnswer(
        snapshot_id=batch.about.snapshot_id,
        batch_id=batch.id,
        status=stands.state.value,
        result_digest=stands.outputs.manifest.result_digest if stands.outputs and is_over else None,
        files=summary.files,
        records=summary.records,
        failures=summary.failures,
        seconds=round(time.monotonic() - began, 3),
        action=action,
        store_bytes=tree_bytes(store.root),
        paths=shown_paths(batch),
    )
    _note_missing_tools(runner, records, summary.languages)
    size = human_bytes(answer.store_bytes)
    of = f", of {', '.join(answer.paths)}" if answer.paths else ""
    lines = [f"{answer.status}: batch {batch.id}{of}, {action} in {answer.seconds:.1f} s, store {size}"]
    if is_over:
        lines += summary_lines(summary, worst_findings(records, WORST_SHOWN))
    failed = failures(records, FAILURES_SHOWN) if summary.failures else []
    if failed:
        lines += failure_lines(failed, summary.failures)
    answering.print(answer, lines)
    if signal_status:
        answering.note(f"stopped; continue with: codebatch run --batch {batch.id}")
        return signal_status
    if not is_over:
        if is_narrow:
            return 3 if stands.tally.failed else 0
        raise BatchIncomplete(
            f"{stands.tally.open:,} of {stands.tally.planned:,} results are missing",
            hint=f"continue with: codebatch run --batch {batch.id}",
        )
    if stands.state is not BatchState.COMPLETED:
        hint = f"see: codebatch errors --batch {batch.id}; do them again with: codebatch resume --batch {batch.id}"
        if any(record["reason"] == "object" for record in failed):
            hint += "; what is lost from the store comes back with: codebatch snapshot PATH"
        raise BatchIncomplete(
            f"{stands.tally.failed + stands.tally.cancelled:,} of {count_of(stands.tally.planned, 'result')} failed",
            hint=hint,
        )
    is_latest = resolve_batch(store, None, whole=True).id == batch.id
    answering.note("next: codebatch errors" + ("" if is_latest else f" --batch {batch.id}"))
    return 0
