"""Running: a tree from its files to its outputs, a batch from where it stands, some of its shards."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from codebatch.application.collecting import Collected, tidy
from codebatch.application.configuration import Configuration, load_configuration
from codebatch.application.freezing import Frozen, freeze, nothing_to_do, rules_for
from codebatch.application.planning import choose_pipeline, planner_of
from codebatch.application.repair import Mending
from codebatch.application.stores import StorePlace
from codebatch.coordinator.limits import Limits, default_memory_bytes
from codebatch.coordinator.loop import Scope
from codebatch.coordinator.planning import missing_tools
from codebatch.coordinator.run import NOTHING_EXECUTED, Executed, execute
from codebatch.coordinator.score import Progress
from codebatch.engine.lifecycle import BatchState
from codebatch.errors import BatchIncomplete, InvalidInput, StoreError
from codebatch.model.quantities import count_of
from codebatch.model.shard import ShardId
from codebatch.model.task import task_name
from codebatch.query.arguments import path_of, refuse_below_one, refuse_text
from codebatch.query.filters import JsonRecord
from codebatch.query.records import BatchRecords
from codebatch.query.standing import Standing, standing
from codebatch.query.summary import Summary, failures, summarise, worst_findings
from codebatch.snapshotting.roots import resolve_sources
from codebatch.snapshotting.take import takes_a_file
from codebatch.store.batches import Batch
from codebatch.store.ledgers import load_ledger
from codebatch.store.outcomes import Outcomes
from codebatch.store.snapshots import Snapshot
from codebatch.store.store import Store
from codebatch.system.files import Lock

WORST_MAX = 10
FAILURES_MAX = 20

Action = Literal["ran", "continued", "helped", "up to date", "ended before"]
"""What became of a batch: `helped` where another process is at work on it, `ended before` with failures."""


class Listener:
    """Who is told how a run goes, while it lasts. Called in the thread of `run`; what is not overridden is not told."""

    def note(self, text: str) -> None:
        """Something worth knowing."""

    def frozen(self, frozen: Frozen) -> None:
        """The tree is frozen."""

    def chosen(self, batch: Batch, action: Action) -> None:
        """This batch answers for what was frozen."""

    def update(self, progress: Progress) -> None:
        """How far the work is: whenever a worker was heard, and ten times a second where none is."""

    def collected(self, collected: Collected) -> None:
        """What nobody needs any more is gone. Not called where nothing went."""


class Execution(msgspec.Struct, frozen=True, kw_only=True):
    """How a batch is executed. None: as the configuration has it. `memory_mb` is of a worker and its children, in MiB.

    `take_over`: what processes on other hosts hold is done too. `shuffle_seed`: of a random order of the work.
    `hash_seed`: of Python's hashes in workers. `reuses`: what older batches have is taken over.

    Raises InvalidInput for a number that no batch can be executed with.
    """

    configuration: Configuration
    jobs: int | None = None
    file_seconds: float | None = None
    memory_mb: int | None = None
    take_over: bool = False
    shuffle_seed: int | None = None
    reuses: bool = True
    hash_seed: int = 0

    def __post_init__(self) -> None:
        refuse_below_one(jobs=self.jobs, memory_mb=self.memory_mb)
        if self.file_seconds is not None and not self.file_seconds > 0:
            raise InvalidInput(f"`file_seconds` must be more than 0, and is {self.file_seconds}")

    def execute(
        self,
        store: Store,
        lock: Lock,
        batch: Batch,
        scope: Scope,
        listener: Listener,
        snapshot: Snapshot | None = None,
    ) -> Executed:
        """Do what is open in a batch.

        `lock` is that of `Store.writing`, which the caller holds from before it looked at the batch; `snapshot` is the
        batch's, where somebody has decoded it already.
        """
        settings = self.configuration.settings
        jobs = self.jobs or self.configuration.jobs
        memory_mb = self.memory_mb or settings.memory_mb_max
        return execute(
            store,
            batch,
            catalogue=self.configuration.catalogue,
            jobs=jobs,
            limits=Limits(
                file_seconds=self.file_seconds or settings.file_seconds_max,
                project_seconds=settings.project_seconds_max,
                memory_bytes=memory_mb << 20 if memory_mb else default_memory_bytes(jobs),
            ),
            scope=replace(scope, shuffle_seed=self.shuffle_seed, take_over=self.take_over),
            watcher=listener,
            store_lock=lock.descriptor,
            reuses=self.reuses,
            hash_seed=self.hash_seed,
            snapshot=snapshot,
        )


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """How a run went, and where its batch stands.

    `worst` are the gravest findings, once the batch has ended; `failures` the first failures. `missing_grammars` tells
    of how many files of a language only the part was said that needs no grammar. `executed` is of this run, all 0 where
    nothing was left to do. `unkeyed`: of own tasks whose results no other batch takes over, what these rest on besides
    their keys, unless they are set so. `task` is the one that the work was restricted to.
    """

    store: Store
    batch: Batch
    action: Action
    seconds: float
    standing: Standing
    summary: Summary
    worst: tuple[JsonRecord, ...]
    failures: tuple[JsonRecord, ...]
    missing_grammars: Mapping[str, int]
    executed: Executed
    unkeyed: Mapping[str, str]
    task: str | None

    @property
    def result_digest(self) -> str | None:
        """The digest of all results; None before the batch has ended."""
        stands = self.standing
        return stands.outputs.manifest.result_digest if stands.outputs and stands.state.is_final else None

    @property
    def is_complete(self) -> bool:
        """Whether every planned result is there."""
        return self.standing.state is BatchState.COMPLETED

    @property
    def shortfall(self) -> BatchIncomplete | None:
        """What lacks of all results; None where nothing does, or one task was run and the batch is still open."""
        tally, batch = self.standing.tally, self.batch
        if not self.standing.state.is_final:
            if self.task is not None:
                return None
            return BatchIncomplete(
                f"{tally.open:,} of {tally.planned:,} results are missing",
                hint=f"continue with: codebatch run --batch {batch.id}",
            )
        if self.is_complete:
            return None
        hint = f"see: codebatch errors --batch {batch.id}; do them again with: codebatch resume --batch {batch.id}"
        if any(record["reason"] == "object" for record in self.failures):
            hint += "; what is lost from the store comes back with: codebatch snapshot PATH"
        failed = f"{tally.failed + tally.cancelled:,} of {count_of(tally.planned, 'result')} failed"
        return BatchIncomplete(failed, hint=hint)


class ShardsRan(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one task at some shards: `done` or `failed` by shard, and those that are open still."""

    states: Mapping[ShardId, Literal["done", "failed"]]
    open: tuple[ShardId, ...]
    signal_status: int = 0


def run(
    *paths: str | Path,
    store: str | Path | None = None,
    pipeline: str | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    jobs: int | None = None,
    listener: Listener | None = None,
) -> Ran:
    """Freeze paths, and run a pipeline over them; where that was done before, nothing is left to do.

    Settings and own tasks are those of the project around the current directory. `store` is made where there is none.
    In the main thread SIGINT, SIGTERM and SIGHUP end the work early (`Ran.executed`); in another one they are the
    caller's. Raises CodebatchError or OSError; what could not be done is told by `Ran.shortfall`.
    """
    refuse_text(include=include, exclude=exclude)
    return run_paths(
        tuple(map(path_of, paths)),
        StorePlace(None if store is None else path_of(store)),
        Execution(configuration=load_configuration(Path.cwd()), jobs=jobs),
        pipeline=pipeline,
        include=tuple(include),
        exclude=tuple(exclude),
        listener=listener or Listener(),
    )


def run_paths(
    paths: tuple[Path, ...],
    place: StorePlace,
    execution: Execution,
    *,
    pipeline: str | None = None,
    task: str | None = None,
    again: bool = False,
    include: tuple[str, ...] = (),
    exclude: tuple[str, ...] = (),
    allow_empty: bool = False,
    listener: Listener,
) -> Ran:
    """Freeze paths, find, adopt or make the batch that answers for them, and do what is open in it.

    `again`: a new batch that does all anew, whatever there is.
    `include` stands for the configured patterns, `exclude` is added to them. What is wrong with the arguments is said
    before anything is written. Raises CodebatchError.
    """
    began = time.monotonic()
    configuration = execution.configuration
    chosen = choose_pipeline(configuration, pipeline)
    resolve_sources(paths, None)
    if task is not None and task_name(task) not in chosen.tasks:
        raise InvalidInput(f"pipeline {chosen.name} has no task {task!r}", hint=f"one of: {', '.join(chosen.tasks)}")
    rules = rules_for(configuration, include, exclude)
    if not (allow_empty or place.exists() or takes_a_file(paths, rules)):
        raise nothing_to_do(paths)
    store = place.open_or_make(listener.note)
    with store.writing() as lock:
        mending = Mending(execution, store, lock, listener)
        frozen = freeze(store, paths, rules, listener.note, allow_empty=allow_empty)
        listener.frozen(frozen)
        planner = planner_of(configuration, store, frozen, chosen, listener.note)
        batch, is_new = planner.find_or_make(again=again, reuses=execution.reuses)
        stands = standing(batch)
        action: Action = "ran" if is_new else _found(stands)
        listener.chosen(batch, action)
        executed = NOTHING_EXECUTED
        if not stands.is_over:
            scope = scope_of(batch, task)
            executed = mending(batch, lambda: execution.execute(store, lock, batch, scope, listener, frozen.snapshot))
            batch = planner.answering_one(batch)
        ran = mending(batch, lambda: _ran(execution, store, batch, action, began, executed=executed, task=task))
    _tidy(execution, ran, listener)
    return ran


def run_batch(execution: Execution, store: Store, batch: Batch, task: str | None, listener: Listener) -> Ran:
    """Do what is open in a batch as it was planned, of one task where one is named. Raises CodebatchError."""
    began = time.monotonic()
    with store.writing() as lock:
        mending = Mending(execution, store, lock, listener)
        stands = standing(batch)
        scope = scope_of(batch, task)
        action: Action = "ran" if stands.state is BatchState.PENDING else _found(stands)
        executed = NOTHING_EXECUTED
        if not stands.is_over:
            executed = mending(batch, lambda: execution.execute(store, lock, batch, scope, listener))
        ran = mending(batch, lambda: _ran(execution, store, batch, action, began, executed=executed, task=task))
    _tidy(execution, ran, listener)
    return ran


def resume(execution: Execution, store: Store, batch: Batch, listener: Listener) -> Ran:
    """Do what is open in a batch, and again what failed. Raises CodebatchError."""
    began = time.monotonic()
    with store.writing() as lock:
        mending = Mending(execution, store, lock, listener)
        stands = standing(batch)
        if stands.state is BatchState.COMPLETED and stands.outputs is not None:
            return mending(batch, lambda: _ran(execution, store, batch, "up to date", began))
        scope = Scope(retry_failed=True)
        executed = mending(batch, lambda: execution.execute(store, lock, batch, scope, listener))
        ran = mending(batch, lambda: _ran(execution, store, batch, "continued", began, executed=executed))
    _tidy(execution, ran, listener)
    return ran


def run_shards(execution: Execution, store: Store, batch: Batch, task: str, prefix: str) -> ShardsRan:
    """Run one task of the shards whose ids begin with a prefix. Raises CodebatchError."""
    scope, name, plan = scope_of(batch, task), task_name(task), batch.plan()
    if name in plan.project_tasks:
        raise InvalidInput(
            f"{name} works on the project, not on shards",
            hint=f"run it with: codebatch run --batch {batch.id} --task {name}",
        )
    chosen = frozenset(shard.id for shard in plan.shards if shard.id.startswith(prefix))
    if not chosen:
        return ShardsRan(states={}, open=())
    with store.writing() as lock:
        stands = standing(batch)
        if stands.state is BatchState.COMPLETED and stands.is_over:
            return ShardsRan(states=dict.fromkeys(sorted(chosen), "done"), open=())
        executed = execution.execute(store, lock, batch, replace(scope, shards=chosen), Listener())
        ledger = load_ledger(plan, Outcomes(batch.files, batch.root))
    states: dict[ShardId, Literal["done", "failed"]] = {
        shard: "failed" if ledger.unsuccessful(shard, name) else "done"
        for shard in sorted(chosen)
        if not ledger.holes(shard, name)
    }
    return ShardsRan(states=states, open=tuple(sorted(chosen - set(states))), signal_status=executed.signal_status)


def _tidy(execution: Execution, ran: Ran, listener: Listener) -> None:
    """Let go what nobody needs, at the end of a run that was not broken off."""
    if ran.executed.signal_status:
        return
    try:
        collected = tidy(ran.store, keep=execution.configuration.settings.store.keep, ran=ran.batch)
    except StoreError as error:
        listener.note(f"what is old stays: {error.message}")
        return
    if collected is not None and not collected.is_nothing:
        listener.collected(collected)


def scope_of(batch: Batch, task: str | None) -> Scope:
    """All of a batch, or one task; where that is of project scope, with what it needs. Raises InvalidInput."""
    if task is None:
        return Scope()
    plan = batch.plan()
    name = task_name(task)
    if name not in plan.task_names:
        raise InvalidInput(f"the batch has no task {task!r}", hint=f"one of: {', '.join(plan.task_names)}")
    return Scope(tasks=plan.needed_for(name) if name in plan.project_tasks else frozenset({name}))


def _found(stands: Standing) -> Action:
    if stands.is_over:
        return "up to date" if stands.state is BatchState.COMPLETED else "ended before"
    return "helped" if stands.holders else "continued"


def _ran(
    execution: Execution,
    store: Store,
    batch: Batch,
    action: Action,
    began: float,
    *,
    executed: Executed = NOTHING_EXECUTED,
    task: str | None = None,
) -> Ran:
    stands = standing(batch)
    if stands.outputs is not None:
        stands.outputs.check_lengths()
    records = BatchRecords(store, batch)
    summary = summarise(records)
    catalogue = execution.configuration.catalogue
    missing = missing_tools(catalogue, records.plan.tasks).keys() & summary.languages.keys()
    own = [name for name in records.task_names if name in catalogue.own_places and catalogue.own_places[name].reuse]
    return Ran(
        store=store,
        batch=batch,
        action=action,
        seconds=round(time.monotonic() - began, 3),
        standing=stands,
        summary=summary,
        worst=tuple(worst_findings(records, WORST_MAX)) if stands.state.is_final else (),
        failures=tuple(failures(records, FAILURES_MAX)) if summary.failures else (),
        missing_grammars={language: summary.languages[language] for language in sorted(missing)},
        executed=executed,
        unkeyed={name: mark for name in own if (mark := records.unkeyed(name))},
        task=task,
    )
