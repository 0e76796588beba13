"""Cancelling a batch from anywhere: asked by a request, and waited for until nothing of it runs."""

from __future__ import annotations

import time

from codebatch.errors import BatchRunning
from codebatch.model.work.command import CommandId
from codebatch.model.work.request import Cancel
from codebatch.operations import Note
from codebatch.operations.runs.requests import request
from codebatch.query.status.batch_status import CurrentState, read_current_state
from codebatch.scheduling.lifecycle import BatchState, CommandState
from codebatch.store import layout
from codebatch.store.batches.batches import BatchDir, check_kind
from codebatch.store.batches.holders import HolderFile, LeaseReader
from codebatch.store.batches.store import StoreDir
from codebatch.system.host import is_here
from codebatch.system.processes.proc import stat
from codebatch.system.processes.processes import kill_holder
from codebatch.work.control.batches import WorkBatch, load_work_batch
from codebatch.work.control.listener import WorkListener
from codebatch.work.control.trust import check_trusted

LOOK_SECONDS = 0.05
LOOKS_UNTIL_TOLD = 20
LOOKS_UNTIL_NAMED = 60
"""So many of 50 ms are waited until it is told what can be done about it."""
KILLS_MAX = 100
"""How often it is looked for processes to kill: those that were killed may have started others."""


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
    """Have a batch end, unless it is over: what runs is ended, within `grace_seconds` or each command's own grace.

    Where it `waits` nothing of the batch runs on return: where nobody conducts it any more, we do. `is_forced`: who is
    at work on it here is killed first, and their commands by us. Returns where it stands then. Raises WrongBatchKind
    for an analysis, CommandsForeign where the store was not made here by us, unless that `is_trusted`.
    """
    check_kind(batch, "work")
    if not is_trusted:
        check_trusted(store, batch)
    found = load_work_batch(store, batch)
    if _is_over(found):
        return found
    attempts = {each.id: each.epoch for each in found.standing.commands if each.holder is not None}
    request(batch, Cancel(grace_seconds=grace_seconds, attempts=attempts))
    if is_forced:
        _kill_holders(batch, listener.note)
    if waits:
        _wait_for_end(store, batch, listener)
    return load_work_batch(store, batch)


def cancel_analysis(
    batch: BatchDir, *, is_forced: bool = False, waits: bool = True, listener: WorkListener
) -> CurrentState:
    """Have an analysis end, unless it is over: workers end the file at hand, and what they have is kept.

    Where it `waits` nobody is at work on it on return. `is_forced`: who is at work on it here is killed first.
    """
    stands = read_current_state(batch)
    if stands.state.is_final and not stands.holders:
        return stands
    request(batch, Cancel())
    if is_forced:
        _kill_holders(batch, listener.note)
    waiting = _Waiting(batch, listener)
    while waits and (live := [one for one, is_live in LeaseReader(batch.files, batch.root).holders() if is_live]):
        waiting.wait_for(live[0], ())
    return read_current_state(batch)


def _is_over(found: WorkBatch) -> bool:
    """Whether a Cancel has nothing to end: not even what waits for an answer."""
    stands = found.standing
    waits = stands.state is not BatchState.CANCELLED and found.of(CommandState.BLOCKED)
    return stands.state.is_final and not waits and stands.coordinator is None and not stands.workers


def _wait_for_end(store: StoreDir, batch: BatchDir, listener: WorkListener) -> None:
    """Until who conducts it is gone; then conduct it, which ends what the dead have left."""
    from codebatch.work.control.run import run_to_completion  # 50 ms, while it is heeded

    while True:
        _wait_for_leader(store, batch, listener)
        try:
            run_to_completion(store, batch, listener)
        except BatchRunning:  # Another one was sooner.
            continue
        return


def _wait_for_leader(store: StoreDir, batch: BatchDir, listener: WorkListener) -> None:
    reader = LeaseReader(batch.files, batch.root)
    waiting = _Waiting(batch, listener)
    while (leader := reader.leader()[1]) is not None:
        is_told = waiting.is_told_now
        running = load_work_batch(store, batch).of(CommandState.RUNNING) if is_told else ()
        waiting.wait_for(leader, tuple(each.id for each in running))


class _Waiting:
    """Waits for who is at work on a batch, and tells who that is; after a while also what can be done about it."""

    def __init__(self, batch: BatchDir, listener: WorkListener) -> None:
        self._batch = batch
        self._listener = listener
        self._looks = 0

    @property
    def is_told_now(self) -> bool:
        """Whether it is told again who is waited for, and so what runs."""
        return self._looks % LOOKS_UNTIL_TOLD == 0

    def wait_for(self, holder: HolderFile, running: tuple[CommandId, ...]) -> None:
        """Wait a moment for a process, which runs these."""
        who = f"process {holder.pid} on {holder.host.name}"
        if self.is_told_now:
            self._listener.waiting(running, who)
        if self._looks == LOOKS_UNTIL_NAMED:
            self._listener.note(f"still waiting for {who}: {self._what_to_do(holder)}")
        self._looks += 1
        time.sleep(LOOK_SECONDS)

    def _what_to_do(self, holder: HolderFile) -> str:
        force = f"kill it with: codebatch cancel --force --batch {self._batch.id}"
        if not is_here(holder.host):
            return f"the process runs on another machine; run there: codebatch cancel --force --batch {self._batch.id}"
        found = stat(holder.pid)
        if found is not None and found.is_stopped:
            return f"the process is suspended; continue it with: kill -CONT {holder.pid}; or {force}"
        return f"the process is still running; {force}"


def _kill_holders(batch: BatchDir, note: Note) -> None:
    """SIGKILL to all processes of this machine that are at work on a batch: to who conducts it, then to workers."""
    reader = LeaseReader(batch.files, batch.root)
    for _ in range(KILLS_MAX):
        live = [holder for holder, is_live in reader.holders() if is_live and is_here(holder.host)]
        for holder in sorted(live, key=lambda each: each.role != "coordinator"):
            if kill_holder(holder.pid, batch.root / layout.HOLDERS / holder.holder):
                note(f"killed {holder.role} {holder.holder}, process {holder.pid}")
        if not live:
            return
        time.sleep(LOOK_SECONDS)
