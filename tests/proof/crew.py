"""A crew in a simulation: real workers in simulated processes, no sockets, no signals, no limits of time.

It sees all that passes between the loop and its workers, so what a worker is to do, and what was known when it was told
so, is noted here and not in the loop that is on trial.
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
    """A worker as its coordinator sees it. `status` is what it ends with unless it is killed.

    `unit` is what it was last told to do, `assigned_in` is after how many waits of the coordinator it was, `scanned_at`
    the step at which the coordinator had last read the disk then.
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
    """Implements Crew. `holders` are all that it ever had, with its coordinator.

    `looked_at` is the step at which the coordinator last began to read what is committed, `scanned_at` the last such
    step of which it has handled all that it found. `heard` is in which of its `waits` it was told of a register.
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
        """A process begins to read what is committed."""
        if process is self._process:
            self.looked_at = self._world.schedule.steps

    def begin(self) -> None:
        pass

    def end(self) -> None:
        """Whatever happened, leave no process behind. Where the coordinator is killed, the kernel ends them."""
        if self._process.is_doomed:
            return
        for worker in self.workers.values():
            if worker.process.is_alive:
                worker.process.kill()
        self.workers.clear()

    def start(self, worker: WorkerId) -> WorkerHandle:
        started = self.workers[worker] = self._world.start_worker(self, worker)
        self.holders.add(started.holder)
        return WorkerHandle(holder=started.holder, pid=0)

    def send(self, worker: WorkerId, message: messages.MessageToWorker) -> None:
        if worker not in self.workers:
            return
        told = self.workers[worker]
        match message:
            case messages.Assign(unit=unit):
                told.unit = unit
                told.assigned_in, told.scanned_at = self.waits, self.scanned_at
            case messages.Shrink(end=end):
                assert told.unit is not None
                told.unit = replace(told.unit, end=end)
            case _:
                pass
        told.pipe.send(message)

    def wait(self) -> list[WorkerEvent | TickPassed]:
        """At most one message of each worker, so that much may happen between two. Each wait takes a moment or long."""
        self._process.wait(self._has_news, is_patient=False)
        self.waits += 1
        heard: list[WorkerEvent | TickPassed] = []
        if self.holder in self._world.draining:
            self._world.draining.discard(self.holder)
            heard.append(DrainRequest("SIGTERM"))
        for id_, worker in list(self.workers.items()):
            if worker.pipe.has_news:
                message = worker.pipe.receive()
                heard.append(MessageReceived(id_, message) if message else self._bury(id_))
                if isinstance(message, messages.Committed):
                    for register in self._world.note_reported(message.commit):
                        self.heard.setdefault(layout.register_name(*register), self.waits)
                    self._world.refused_late += message.lost
        heard.append(TickPassed(WAIT_SECONDS[self.waits % len(WAIT_SECONDS)]))
        return heard

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
