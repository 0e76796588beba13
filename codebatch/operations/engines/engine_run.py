"""Execution of the open shards of a batch by an engine, before this machine executes the rest (SPEC.md "Engines")."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial

import msgspec

from codebatch.coordinator.engines.capsules import choose_remote_tasks
from codebatch.coordinator.engines.interface import Engine
from codebatch.coordinator.engines.loop import EngineLoop, EngineOutcome
from codebatch.coordinator.engines.ports import EngineProgress, PartPorts, SystemEngineClock
from codebatch.coordinator.processes.signals import SignalCounter
from codebatch.engines.opening import EngineOptions, open_engine
from codebatch.engines.part_run import run_part
from codebatch.errors import Stopped
from codebatch.model.part import ExternalOutcome
from codebatch.model.text.quantities import count_text
from codebatch.operations.engines.engine_batch import EngineBatch
from codebatch.operations.runs.execution import ExecutionSettings, Listener, ShardExecutor
from codebatch.scheduling.analysis.part_dispatcher import PartDispatcher
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.snapshots.snapshots import Snapshot


class EngineRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An engine to use: its URL, and the options of the connection."""

    url: str
    options: EngineOptions

    @contextlib.contextmanager
    def opened(self) -> Iterator[Engine]:
        """Open the engine, and close it at the end. Raises InvalidInput."""
        engine = open_engine(self.url, self.options)
        try:
            yield engine
        finally:
            engine.close()

    @contextlib.contextmanager
    def opened_executor(self) -> Iterator[ShardExecutor]:
        """Like `opened`, for a run."""
        with self.opened() as engine:
            yield partial(execute_on_engine, engine)


class _ListenerAdapter:
    """Passes the notes and the progress of an engine loop to the listener of a run."""

    def __init__(self, listener: Listener, engine: Engine) -> None:
        self._listener = listener
        self._engine = engine

    def note(self, text: str) -> None:
        self._listener.note(text)

    def update_engine(self, progress: EngineProgress) -> None:
        self._listener.parts(self._engine.name, progress)


def execute_on_engine(
    engine: Engine,
    execution: ExecutionSettings,
    store: StoreDir,
    batch: BatchDir,
    snapshot: Snapshot,
    listener: Listener,
) -> bool:
    """Execute the open shards of a batch on an engine. Return False if a Cancel request ended the execution.

    Results of older batches are reused first. Work that the engine does not finish stays open: shards of which only a
    part is open, tasks that need files of the project, and parts that failed twice. Results that arrived are durable,
    even if an error is raised. Raises CodebatchError, and Stopped after a signal.
    """
    plan = batch.plan()
    catalogue = execution.configuration.catalogue
    catalogue.look_up_commands(plan.task_names)
    chosen = choose_remote_tasks(plan.tasks, catalogue)
    for task, reason in chosen.reasons.items():
        listener.note(f"the task {task} runs on this machine: {reason}")
    signals = SignalCounter()
    signals.begin()
    try:
        with EngineBatch(execution, store, batch, chosen.tasks, snapshot, jobs=engine.cores_per_slot) as parts:
            ports: PartPorts[list[ExternalOutcome]] = PartPorts(
                take_leases=parts.take_leases,
                make_capsule=parts.make_capsule,
                read_answer=parts.read_answer,
                commit=parts.commit,
            )
            loop = EngineLoop(
                engine,
                PartDispatcher(
                    parts.open_shards,
                    has_unknown_costs=any(
                        task.name in catalogue.locations or catalogue.is_external(task.name) for task in chosen.tasks
                    ),
                ),
                ports,
                run_part=run_part,
                plan_digest=plan.digest,
                watcher=_ListenerAdapter(listener, engine),
                count_signals=lambda: signals.count + parts.is_cancelled(),
                clock=SystemEngineClock(),
            )
            outcome = loop.run()
    finally:
        signals.end()
    if signals.count:
        raise Stopped(
            f"stopped while {engine.name} was running parts; results that arrived are kept",
            hint="to continue, run the same command again",
            exit_status=signals.exit_status,
        )
    _note_outcome(engine, outcome, listener)
    return not outcome.is_stopped


def _note_outcome(engine: Engine, outcome: EngineOutcome, listener: Listener) -> None:
    if outcome.answers:
        cpu_seconds = sum(usage.cpu_seconds for usage in outcome.hosts.values())
        listener.detail(
            f"{count_text(outcome.answers, 'part')} ran on {engine.name} "
            f"({', '.join(outcome.hosts)}): {cpu_seconds:,.1f} s of CPU time"
        )
