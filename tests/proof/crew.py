"""A worker backend of a simulation: real workers in simulated processes, without sockets, signals or time limits.

The backend sees all messages between the loop and its workers. So it records the unit of each worker, and what the
coordinator knew when it assigned the unit. The loop under test records nothing for the checks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from codebatch.coordinator.processes.worker_backend import (
    DrainRequest,
    MessageReceived,
    TickPassed,
    WorkerEvent,
    WorkerExited,
    WorkerHandle,
)
from codebatch.model.outcome import HolderId, WorkUnit
from codebatch.protocol import messages
from codebatch.scheduling.events import WorkerId
from codebatch.store import layout
from codebatch.store.batches.holders import HolderFile
from codebatch.system.processes.progress_cell import WorkerStep
from tests.support.schedule import Process
from tests.support.simulated_channel import Pipe, SimulatedCell

if TYPE_CHECKING:
    from tests.proof.world import World

KILLED = -9
WAIT_SECONDS = (0.1, 0.1, 1.0)


@dataclass(slots=True)
class SimulatedWorker:
    """A worker as its coordinator sees it. `status` is its exit status, unless it is killed.

    `unit` is its last assigned unit. `assigned_in` is the number of waits of the coordinator before the assignment.
    `scanned_at` is the step at which the coordinator had last read the disk before the assignment.
    """

    holder: HolderId
    process: Process
    cell: SimulatedCell
    pipe: Pipe = field(default_factory=Pipe)
    status: int = 0
    unit: WorkUnit | None = None
    assigned_in: int = 0
    scanned_at: int = 0


class SimulatedCrew:
    """Implementation of WorkerBackend. `holders` are the coordinator and all its workers, including dead ones.

    `looked_at` is the step at which the coordinator last began to read committed outcomes. `scanned_at` is the last
    such step whose outcomes it has handled completely. `heard` maps each reported register to the number of the wait
    that returned the report.
    """

    def __init__(self, world: World, process: Process, holder: HolderId) -> None:
        self._world = world
        self._process = process
        self.holder = holder
        self.holders = {holder}
        self.workers: dict[WorkerId, SimulatedWorker] = {}
        self.looked_at = self.scanned_at = 0
        self.heard: dict[str, int] = {}
        self.waits = 0

    def note_look(self, process: Process) -> None:
        """Record that a process begins to read committed outcomes."""
        if process is self._process:
            self.looked_at = self._world.schedule.steps

    def begin(self) -> None:
        pass

    def end(self) -> None:
        """Kill all workers that are left. If the coordinator is killed, the kernel does this."""
        if self._process.is_doomed:
            return
        for worker in self.workers.values():
            if worker.process.is_alive:
                worker.process.kill()
        self.workers.clear()

    def start(self, worker: WorkerId) -> WorkerHandle:
        simulated = self.workers[worker] = self._world.start_worker(self, worker)
        self.holders.add(simulated.holder)
        return WorkerHandle(holder=simulated.holder, pid=0)

    def send(self, worker: WorkerId, message: messages.MessageToWorker) -> None:
        if worker not in self.workers:
            return
        addressed = self.workers[worker]
        match message:
            case messages.Assign(unit=unit):
                addressed.unit = unit
                addressed.assigned_in, addressed.scanned_at = self.waits, self.scanned_at
            case messages.Shrink(end=end):
                assert addressed.unit is not None
                addressed.unit = replace(addressed.unit, end=end)
            case _:
                pass
        addressed.pipe.send(message)

    def wait(self) -> list[WorkerEvent | TickPassed]:
        """Return at most one message of each worker, so that other steps can fall between two messages.

        The reported duration of a wait is short or long.
        """
        self._process.wait(self._has_news, is_patient=False)
        self.waits += 1
        events: list[WorkerEvent | TickPassed] = []
        if self.holder in self._world.draining:
            self._world.draining.discard(self.holder)
            events.append(DrainRequest("SIGTERM"))
        for id_, worker in list(self.workers.items()):
            if worker.pipe.has_news:
                message = worker.pipe.receive()
                events.append(MessageReceived(id_, message) if message else self._bury(id_))
                if isinstance(message, messages.Committed):
                    for register in self._world.note_reported(message.commit):
                        self.heard.setdefault(layout.register_name(*register), self.waits)
                    self._world.refused_late += message.lost
        events.append(TickPassed(WAIT_SECONDS[self.waits % len(WAIT_SECONDS)]))
        return events

    def step(self, worker: WorkerId) -> WorkerStep | None:
        return self.workers[worker].cell.read() if worker in self.workers else None

    def is_holder_stuck(self, holder: HolderFile) -> bool:
        return self._world.is_stuck(holder.holder)

    def is_holder_silent(self, holder: HolderFile, commits: int) -> bool:
        return False

    def kill_orphans(self, dead: set[HolderId]) -> None:
        pass

    def _has_news(self) -> bool:
        return self.holder in self._world.draining or any(worker.pipe.has_news for worker in self.workers.values())

    def _bury(self, id_: WorkerId) -> WorkerExited:
        worker = self.workers.pop(id_)
        is_from_outside = worker.holder in self._world.killed
        return WorkerExited(
            worker=id_,
            returncode=KILLED if is_from_outside else worker.status,
            how="",
            is_from_outside=is_from_outside,
            step=worker.cell.read(),
        )
