"""Execution of a work batch, from its present state until no command can start."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec import UNSET

from codebatch.coordinator.work.command_backend import ProcessCommandBackend
from codebatch.coordinator.work.duration_estimates import load_estimator
from codebatch.coordinator.work.interfaces import CommandWatcher
from codebatch.coordinator.work.loop import WorkCoordinator
from codebatch.coordinator.work.notifications import Notifier
from codebatch.model.work.command import CommandId
from codebatch.model.work.work_batch import Work
from codebatch.protocol.launch import HOLDER_VARIABLE, WorkerSettings
from codebatch.scheduling.work.conductor import Conductor
from codebatch.scheduling.work.tree_inputs import kept_trees
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.holders import HolderFile, new_holder_id
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.work.attempts import AttemptReader
from codebatch.store.work.trees import remove_leftover_trees
from codebatch.store.work.work_batches import read_command, read_command_ids, read_work
from codebatch.system.clock import wall_ns
from codebatch.system.host import this_host
from codebatch.system.processes.environment import original_environment
from codebatch.system.processes.garbage_collector import collector_paused
from codebatch.system.processes.memory import end_marked

NOTIFY_LEFTOVER_SECONDS_MAX = 2.0
"""Time at the end of a coordinator for processes that notification commands have left behind."""


class WorkRunOutcome(NamedTuple):
    """The result of an execution of a work batch.

    `exit_status` is the exit status for the signal that ended the execution early, otherwise 0. `ended_at` is the end
    of the batch on the monotonic clock, before the last notifications.
    """

    exit_status: int
    attempts: AttemptReader
    ended_at: float


def run_work_batch(
    store: StoreDir,
    batch: BatchDir,
    *,
    watcher: CommandWatcher | None = None,
    store_lock: int | None = None,
    waits_for_answers: bool = False,
    wants_colors: bool = False,
) -> WorkRunOutcome:
    """Execute the open commands of a work batch.

    With `waits_for_answers`, the run continues while questions are open, whatever the setting of the batch is.
    `store_lock` is the descriptor of the caller's lock of the store. Workers inherit it and hold the lock until they
    exit. With `wants_colors`, commands are asked to print colors.

    Raises BatchRunning, EnvironmentBroken, StoreUnwritable or StoreCorrupt. Committed outcomes are kept, and workers
    finish the commands that are running.
    """
    with collector_paused():
        work, plan = read_work(batch), batch.plan()
    with contextlib.ExitStack() as event_files, _running_notifier(work, watcher) as notifier:
        while True:
            about = HolderFile(
                holder=new_holder_id(), role="coordinator", pid=os.getpid(), host=this_host(), since_ns=wall_ns()
            )
            settings = WorkerSettings(
                store=str(store.root),
                batch=batch.id,
                coordinator=about.holder,
                store_lock=store_lock,
                role="commands",
                wants_colors=wants_colors,
            )
            crew = ProcessCommandBackend(batch, settings)
            with collector_paused():
                work = read_work(batch)
                estimator = load_estimator(store, batch, work)
                commands = read_command_ids(store, batch, work)
                conducting = WorkCoordinator(
                    batch,
                    plan,
                    work,
                    commands,
                    crew,
                    about=about,
                    watcher=watcher,
                    wall_ns=wall_ns,
                    estimator=estimator,
                    notifier=notifier,
                    read_text=lambda command: read_command(store, batch, command).text,
                    is_isolated=_isolation_reader(store, batch, work),
                    waits_for_answers=waits_for_answers,
                )
            event_files.callback(conducting.publisher.close)
            _remove_leftover_trees(store, batch, work, conducting.conductor)
            try:
                conducting.run()
            finally:
                conducting.close()
                estimator.save_durations()
            _remove_leftover_trees(store, batch, work, conducting.conductor)
            if crew.exit_status or not conducting.has_unseen_requests:
                return WorkRunOutcome(crew.exit_status, conducting.attempts, time.monotonic())


def _remove_leftover_trees(store: StoreDir, batch: BatchDir, work: Work, conductor: Conductor) -> None:
    """Remove the trees of workers that were killed."""
    if work.trees is not UNSET:
        running = [conductor.agenda.ids[item] for item in conductor.running_items]
        remove_leftover_trees(store, batch.id, work.trees, kept_trees(conductor), running)


def _isolation_reader(store: StoreDir, batch: BatchDir, work: Work) -> Callable[[CommandId], bool]:
    """Return a function that returns whether the next attempt of a command works in a tree of its own."""
    if work.trees is UNSET:
        return lambda _: False
    return lambda command: read_command(store, batch, command).isolation is not UNSET


@contextlib.contextmanager
def _running_notifier(work: Work, watcher: CommandWatcher | None) -> Iterator[Notifier | None]:
    if work.notify is None:
        yield None
        return
    directory = Path(os.fsdecode(work.root))
    mark = new_holder_id()
    environment = {**original_environment(), HOLDER_VARIABLE: mark}
    notifier = Notifier(work.notify, directory=directory, environment=environment)
    notifier.begin()
    try:
        yield notifier
    finally:
        if watcher is not None:
            watcher.on_end()
        notifier.close((lambda _: None) if watcher is None else watcher.on_note)
        # A command may deliver an event in a process that it leaves behind.
        end_marked(HOLDER_VARIABLE, mark, min(work.notify.timeout_seconds, NOTIFY_LEFTOVER_SECONDS_MAX))
        if watcher is not None:
            for problem in notifier.problems:
                watcher.on_warning(problem)
