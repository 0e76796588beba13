"""The crew: who does the work, as the loop sees it. The loop starts workers, tells them and hears of them here alone,
so that one loop leads a crew of processes and a simulated one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, Protocol

import msgspec

from codebatch.model.outcome import HolderId, Unit
from codebatch.model.record import FailureReason
from codebatch.protocol.messages import FromWorker, ToWorker
from codebatch.scheduling.events import WorkerId
from codebatch.store.batches.holders import HolderFile
from codebatch.system.processes.progress_cell import (
    PHASE_BATCHED,
    PHASE_COMMIT,
    PHASE_ITEM,
    PHASE_LEASE,
    PHASE_PROJECT,
    Step,
)

KilledFor = Literal["", "timeout", "memory", "interrupted", "abandoned", "stopped", "nonsense on its channel"]
"""Why a crew killed a worker; empty where it did not."""
NONSENSE: Final = "nonsense on its channel"
"""What a worker is killed for where a task wrote to a descriptor that is not its own."""


class WorkerHandle(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that was started: the name it holds leases under, and its process for people."""

    holder: HolderId
    pid: int


class MessageReceived(msgspec.Struct, frozen=True):
    """A worker sent a message."""

    worker: WorkerId
    message: FromWorker


class WorkerExited(msgspec.Struct, frozen=True, kw_only=True):
    """A worker has ended, and what it left running with it. All that it had said was heard before.

    `how` it ended and its last `stderr` are for people; `step` is the last that it wrote, None where it never did.
    """

    worker: WorkerId
    returncode: int
    how: str
    killed_for: KilledFor = ""
    reason: FailureReason = "crash"
    is_from_outside: bool = False
    step: Step | None = None
    stderr: str = ""
    memory_peak_bytes: int = 0


class Tick(msgspec.Struct, frozen=True):
    """`seconds` have passed since the last Tick. Time in which the coordinator was stopped counts as one at most."""

    seconds: float


class DrainAsked(msgspec.Struct, frozen=True):
    """Somebody wants an end: no unit is to begin any more. `reason` is for people."""

    reason: str


Heard = MessageReceived | WorkerExited | DrainAsked


class WorkerBackend(Protocol):
    """Workers of one coordinator. What concerns a worker that has died is passed over."""

    def begin(self) -> None:
        """Called once, before all but `kill_left_of`; `end` follows, whatever happens between."""

    def end(self) -> None:
        """Leave no process behind."""

    def start(self, worker: WorkerId) -> WorkerHandle:
        """Start a worker; it says Hello when it can be sent a unit."""

    def send(self, worker: WorkerId, message: ToWorker) -> None:
        """Send a message. That nobody is there to receive it is heard, not raised."""

    def wait(self) -> list[Heard | Tick]:
        """What was heard since the last call, in order; waits for something, for a tenth of a second at most.

        A Tick comes last, at most ten times a second.
        """

    def step(self, worker: WorkerId) -> Step | None:
        """What a worker is at; None where that cannot be seen."""

    def is_stuck(self, holder: HolderFile) -> bool:
        """Whether a live holder of this machine has not moved for longer than its own coordinator would let it."""

    def is_silent(self, holder: HolderFile, commits: int) -> bool:
        """Whether a holder on another host gave no sign for as long as is waited: `commits` of others, or its step."""

    def kill_left_of(self, dead: set[HolderId]) -> None:
        """Kill what workers of earlier runs left running."""


def position(step: Step | None, unit: Unit, units: int) -> int:
    """The item that a worker is at in `unit`, the `units`-th that it was given; its end where none is left to begin.

    Of a worker that cannot be seen nothing is known to be left.
    """
    if step is None:
        return unit.end
    if not _is_begun(step, units):
        return unit.start
    return step.item if step.phase in (PHASE_ITEM, PHASE_PROJECT) else unit.end


def positions(
    crew: WorkerBackend, running: Iterable[tuple[WorkerId, Unit | None, int]]
) -> tuple[tuple[WorkerId, int], ...]:
    """Return the position of each worker that has a unit, is seen, and has set the unit up and leased it.

    `running` are workers with their unit and how many they were given.
    """
    steps = ((worker, crew.step(worker), unit, units) for worker, unit, units in running if unit is not None)
    return tuple(
        (worker, position(step, unit, units))
        for worker, step, unit, units in steps
        if step is not None and _is_begun(step, units)
    )


def _is_begun(step: Step, units: int) -> bool:
    return step.unit == units and step.phase != PHASE_LEASE


def finished_items(step: Step | None, unit: Unit, units: int) -> int:
    """Return how many items of `unit`, the `units`-th of its worker, are finished and may not be committed yet."""
    if step is None or step.unit != units:
        return 0
    if step.phase == PHASE_ITEM:
        return max(0, step.item - unit.start)
    return step.end - step.item if step.phase in (PHASE_BATCHED, PHASE_COMMIT) else 0
