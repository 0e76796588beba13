"""Cancellation of a batch by a request. Any process can request it, and can wait until no process runs the batch."""

from __future__ import annotations

import time

from codebatch.errors import BatchRunning
from codebatch.model.work.command import CommandId
from codebatch.model.work.request import Cancel
from codebatch.operations import NoteCallback
from codebatch.operations.runs.requests import append_request
from codebatch.query.status.batch_status import CurrentState, read_current_state
from codebatch.scheduling.lifecycle import BatchState, CommandState
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir, check_kind
from codebatch.store.batches.holders import HolderFile, LeaseReader
from codebatch.store.batches.store_directory import StoreDir
from codebatch.system.host import is_this_machine
from codebatch.system.processes.proc import process_stat
from codebatch.system.processes.processes import kill_holder
from codebatch.work.control.batches import WorkBatch, load_work_batch
from codebatch.work.control.listener import WorkListener
from codebatch.work.control.run import run_to_completion
from codebatch.work.control.trust import check_trusted

END_POLL_SECONDS = 0.05
POLLS_BETWEEN_REPORTS = 20
POLLS_UNTIL_HINT = 60
"""Number of polls after which a note tells the user how to end the process that the cancellation waits for."""
KILL_ROUNDS_MAX = 100
"""Maximum number of rounds in which processes are searched and killed. Killed processes may have started others."""


def cancel_batch(
    store: StoreDir,
    batch: BatchDir,
    *,
    grace_seconds: float | None = None,
    is_forced: bool = False,
    waits: bool = True,
    is_trusted: bool = False,
    listener: WorkListener,
) -> WorkBatch:
    """Cancel a batch, unless it has ended. Return its status.

    Running commands get `grace_seconds`, or their own grace periods if it is None. With `waits`, no command of the
    batch runs on return: if no coordinator is alive, this process ends the commands. With `is_forced`, the coordinator
    and the workers on this machine are killed first.

    Raises WrongBatchKind for an analysis. If `is_trusted` is not set, ForeignCommands is raised if the store was not
    created on this machine by this user.
    """
    check_kind(batch, "work")
    if not is_trusted:
        check_trusted(store, batch)
    before = load_work_batch(store, batch)
    if _has_no_open_work(before):
        return before
    attempts = {each.id: each.epoch for each in before.standing.commands if each.holder is not None}
    append_request(batch, Cancel(grace_seconds=grace_seconds, attempts=attempts))
    if is_forced:
        _kill_holders(batch, listener.note)
    if waits:
        _wait_for_end(store, batch, listener)
    return load_work_batch(store, batch)


def cancel_analysis(
    batch: BatchDir, *, is_forced: bool = False, waits: bool = True, listener: WorkListener
) -> CurrentState:
    """Cancel an analysis, unless it has ended. Return its state.

    Workers finish the current file, and its results are kept. With `waits`, no process of the batch runs on return.
    With `is_forced`, its processes on this machine are killed first.
    """
    status = read_current_state(batch)
    if status.state.is_final and not status.holders:
        return status
    append_request(batch, Cancel())
    if is_forced:
        _kill_holders(batch, listener.note)
    waiting = _EndWait(batch, listener)
    while waits and (
        live := [holder for holder, is_live in LeaseReader(batch.files, batch.root).read_holders() if is_live]
    ):
        waiting.wait_for(live[0], ())
    return read_current_state(batch)


def _has_no_open_work(work_batch: WorkBatch) -> bool:
    """Return whether a cancellation would have no effect: no task is running, waiting or blocked."""
    status = work_batch.standing
    waits = status.state is not BatchState.CANCELLED and work_batch.commands_in(CommandState.BLOCKED)
    return status.state.is_final and not waits and status.coordinator is None and not status.workers


def _wait_for_end(store: StoreDir, batch: BatchDir, listener: WorkListener) -> None:
    """Wait until no coordinator is alive, then become the coordinator of the batch.

    As coordinator, this process ends orphaned commands and applies the cancellation.
    """
    while True:
        _wait_for_leader(store, batch, listener)
        try:
            run_to_completion(store, batch, listener)
        except BatchRunning:  # Another process became the coordinator first. So wait for that process too.
            continue
        return


def _wait_for_leader(store: StoreDir, batch: BatchDir, listener: WorkListener) -> None:
    reader = LeaseReader(batch.files, batch.root)
    waiting = _EndWait(batch, listener)
    while (leader := reader.read_leader()[1]) is not None:
        is_due = waiting.is_report_due
        running = load_work_batch(store, batch).commands_in(CommandState.RUNNING) if is_due else ()
        waiting.wait_for(leader, tuple(command.id for command in running))


class _EndWait:
    """A wait for the processes of a batch.

    It regularly reports which process and tasks it waits for. After a while, it reports how to end this process.
    """

    def __init__(self, batch: BatchDir, listener: WorkListener) -> None:
        self._batch = batch
        self._listener = listener
        self._polls = 0

    @property
    def is_report_due(self) -> bool:
        """Whether the next call of `wait_for` reports the process and the running tasks."""
        return self._polls % POLLS_BETWEEN_REPORTS == 0

    def wait_for(self, holder: HolderFile, running: tuple[CommandId, ...]) -> None:
        """Wait for one poll interval. `holder` is the process that is waited for, and `running` are its tasks."""
        process = f"process {holder.pid} on {holder.host.name}"
        if self.is_report_due:
            self._listener.waiting(running, process)
        if self._polls == POLLS_UNTIL_HINT:
            self._listener.note(f"still waiting for {process}: {process_end_hint(self._batch.id, holder)}")
        self._polls += 1
        time.sleep(END_POLL_SECONDS)


def process_end_hint(batch_id: str, holder: HolderFile) -> str:
    """Return the state of a process that runs a batch as text, with the commands that continue or end it."""
    force = f"codebatch cancel --force --batch {batch_id}"
    if not is_this_machine(holder.host):
        return f"the process runs on another machine; run there: {force}"
    process = process_stat(holder.pid)
    if process is not None and process.is_stopped:
        return f"the process is suspended; continue it with: kill -CONT {holder.pid}; or kill it with: {force}"
    return f"the process is still running; kill it with: {force}"


def _kill_holders(batch: BatchDir, note: NoteCallback) -> None:
    """Send SIGKILL to all processes of the batch on this machine: first to the coordinator, then to the workers."""
    reader = LeaseReader(batch.files, batch.root)
    noted = set()
    for _ in range(KILL_ROUNDS_MAX):
        live = [holder for holder, is_live in reader.read_holders() if is_live and is_this_machine(holder.host)]
        for holder in sorted(live, key=lambda holder: holder.role != "coordinator"):
            is_killed = kill_holder(holder.pid, batch.root / layout.HOLDERS / holder.holder)
            if is_killed and holder.holder not in noted:
                noted.add(holder.holder)
                note(f"killed {holder.role} {holder.holder}, process {holder.pid}")
        if not live:
            return
        time.sleep(END_POLL_SECONDS)
