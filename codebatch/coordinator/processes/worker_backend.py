"""The interface between the event loop and its workers.

The loop starts workers and exchanges messages with them only through this interface. So tests can run the loop with
simulated workers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, Protocol

import msgspec

from codebatch.model.outcome import HolderId, WorkUnit
from codebatch.model.record import FailureReason
from codebatch.protocol.messages import MessageFromWorker, MessageToWorker
from codebatch.scheduling.events import WorkerId
from codebatch.store.batches.holders import HolderFile
from codebatch.system.processes.progress_cell import (
    PHASE_BATCHED,
    PHASE_COMMIT,
    PHASE_ITEM,
    PHASE_LEASE,
    PHASE_PROJECT,
    WorkerStep,
)

KilledFor = Literal["", "timeout", "memory", "interrupted", "abandoned", "stopped", "nonsense on its channel"]
"""The reason why the coordinator killed a worker. It is empty if the coordinator did not kill it."""
INVALID_MESSAGES: Final = "nonsense on its channel"
"""The reason to kill a worker whose task wrote to the worker's channel to the coordinator."""


class WorkerHandle(msgspec.Struct, frozen=True, kw_only=True):
    """A started worker: its holder ID, with which it takes leases, and its process ID, for display."""

    holder: HolderId
    pid: int


class MessageReceived(msgspec.Struct, frozen=True):
    """A message that a worker sent."""

    worker: WorkerId
    message: MessageFromWorker


class WorkerExited(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a worker. All its messages have been returned before, and its orphaned processes have been killed.

    `how` and `stderr` are texts for display. `step` is the last step in its progress cell, or None if it never wrote
    one.
    """

    worker: WorkerId
    returncode: int
    how: str
    killed_for: KilledFor = ""
    reason: FailureReason = "crash"
    is_from_outside: bool = False
    step: WorkerStep | None = None
    stderr: str = ""
    memory_peak_bytes: int = 0


class TickPassed(msgspec.Struct, frozen=True):
    """A report that `seconds` have passed since the last Tick.

    If the coordinator was stopped, the time counts as at most one second.
    """

    seconds: float


class DrainRequest(msgspec.Struct, frozen=True):
    """A request to start no more units. `reason` is a text for display."""

    reason: str


WorkerEvent = MessageReceived | WorkerExited | DrainRequest


class WorkerBackend(Protocol):
    """The interface to the workers of one coordinator. A call for a worker that has died does nothing."""

    def begin(self) -> None:
        """Start the backend. It is called once, before all other methods except `kill_orphans`.

        The caller must call `end` in every case.
        """

    def end(self) -> None:
        """Stop all workers. On return, no process is left."""

    def start(self, worker: WorkerId) -> WorkerHandle:
        """Start a worker. It sends Hello when it is ready for a unit."""

    def send(self, worker: WorkerId, message: MessageToWorker) -> None:
        """Send a message. If the worker is dead, nothing is raised; its end is reported by `wait`."""

    def wait(self) -> list[WorkerEvent | TickPassed]:
        """Wait at most 0.1 s for events. Return the events since the last call, in order.

        A Tick is the last event. There are at most ten Ticks a second.
        """

    def step(self, worker: WorkerId) -> WorkerStep | None:
        """Return the current step of a worker, or None if it is unknown."""

    def is_holder_stuck(self, holder: HolderFile) -> bool:
        """Return whether a live holder on this machine has exceeded the time limit of its step."""

    def is_holder_silent(self, holder: HolderFile, commits: int) -> bool:
        """Return whether a holder on another host has made no progress for too long.

        Progress is a new commit, or a new step in the holder's progress cell. `commits` is the number of commits of
        other coordinators so far.
        """

    def kill_orphans(self, dead: set[HolderId]) -> None:
        """Kill the orphaned processes of dead workers."""


def unit_position(step: WorkerStep | None, unit: WorkUnit, units: int) -> int:
    """Return the item of `unit` that a worker executes. If all items have begun, return the end of the unit.

    `units` is the number of units that were assigned to the worker so far, `unit` being the last. If the step of the
    worker is unknown, return the end of the unit too.
    """
    if step is None:
        return unit.end
    if not _has_begun_unit(step, units):
        return unit.start
    return step.item if step.phase in (PHASE_ITEM, PHASE_PROJECT) else unit.end


def worker_positions(
    crew: WorkerBackend, running: Iterable[tuple[WorkerId, WorkUnit | None, int]]
) -> tuple[tuple[WorkerId, int], ...]:
    """Return the positions of the workers that have begun their unit: they have leased and prepared it.

    `running` has each worker with its unit and the number of units that were assigned to it so far. Workers with
    unknown steps are omitted.
    """
    steps = ((worker, crew.step(worker), unit, units) for worker, unit, units in running if unit is not None)
    return tuple(
        (worker, unit_position(step, unit, units))
        for worker, step, unit, units in steps
        if step is not None and _has_begun_unit(step, units)
    )


def _has_begun_unit(step: WorkerStep, units: int) -> bool:
    return step.unit == units and step.phase != PHASE_LEASE


def finished_items(step: WorkerStep | None, unit: WorkUnit, units: int) -> int:
    """Return the number of items of `unit` that its worker has finished. They may not be committed yet.

    `units` is as in `unit_position`.
    """
    if step is None or step.unit != units:
        return 0
    if step.phase == PHASE_ITEM:
        return max(0, step.item - unit.start)
    return step.end - step.item if step.phase in (PHASE_BATCHED, PHASE_COMMIT) else 0
