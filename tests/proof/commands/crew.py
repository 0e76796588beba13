"""A simulated command backend: real supervisors in simulated processes, which outlive their coordinator."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from codebatch.coordinator.processes.worker_backend import DrainRequest, MessageReceived, WorkerExited, WorkerHandle
from codebatch.coordinator.work.interfaces import CommandBackendEvent, ForcedStopRequested, HelperExited, TimerFired
from codebatch.model.outcome import HolderId
from codebatch.protocol import messages
from codebatch.scheduling.events import WorkerId
from codebatch.store.batches.holders import HolderFile
from tests.proof.commands.tree_inputs import check_tree_input
from tests.proof.commands.wall import ClockReadings
from tests.support.schedule import Process
from tests.support.simulated_channel import Pipe

if TYPE_CHECKING:
    from tests.proof.commands.world import CommandWorld

KILLED = -9


class SimulatedWorker:
    """A worker as its coordinator sees it."""

    def __init__(self, holder: HolderId, process: Process) -> None:
        self.holder = holder
        self.process = process
        self.pipe = Pipe()
        self.is_killed = False


class SimulatedCommandCrew:
    """Implementation of the command backend of a WorkCoordinator."""

    def __init__(self, world: CommandWorld, process: Process, holder: HolderId) -> None:
        self._world = world
        self._process = process
        self.holder = holder
        self.workers: dict[WorkerId, SimulatedWorker] = {}
        self._timers: list[TimerFired] = []
        self._helping: list[bytes] = []
        self.readings = ClockReadings()

    def begin(self) -> None:
        pass

    def end(self) -> None:
        """Close the channels of all workers, so that they notice the end of the coordinator."""
        for worker in self.workers.values():
            worker.pipe.is_coordinator_gone = True
        self.workers.clear()

    def start(self, worker: WorkerId) -> WorkerHandle:
        started = self.workers[worker] = self._world.start_worker(self)
        return WorkerHandle(holder=started.holder, pid=0)

    def send(self, worker: WorkerId, message: messages.MessageToWorker) -> None:
        if worker in self.workers:
            if isinstance(message, messages.Assign):
                self._world.given_behind += len(message.then)
                for assigned in (message, *message.then):
                    check_tree_input(assigned, self._world.batch()[1])
                    self._world.note_assignment(assigned, self.workers[worker].holder, self.readings)
            self.workers[worker].pipe.send(message)

    def set_timer(self, item: int, round_: int, seconds: float, until_ns: int = 0) -> None:
        self._timers.append(TimerFired(item, round_))

    def start_helper(self, arguments: Sequence[str], given: bytes, seconds: float) -> None:
        self._helping.append(given)

    def wait(self) -> list[CommandBackendEvent]:
        """Return at most one message of each worker, so that other steps can fall between two messages."""
        self._process.wait(self._has_news, is_patient=False)
        self.readings.begin_turn()
        events: list[CommandBackendEvent] = []
        chance = self._world.chance
        if self._timers and chance.random() < 0.3:  # Any timer may fire, so there are more orders than with a clock.
            events.append(self._timers.pop(chance.randrange(len(self._timers))))
        if self._helping and chance.random() < 0.3:
            self._helping.pop()
            events.append(HelperExited(chance.choice((None, b"no JSON", b'{"human": true}', b'{"answer": "so"}'))))
        if self.holder in self._world.draining:
            self._world.draining.discard(self.holder)
            events.append(DrainRequest("SIGTERM"))
        if self.holder in self._world.insisting:
            self._world.insisting.discard(self.holder)
            events += [DrainRequest("SIGTERM"), ForcedStopRequested("SIGTERM", is_killed=False)]
        for id_, worker in list(self.workers.items()):
            if worker.pipe.has_news:
                message = worker.pipe.receive()
                events.append(MessageReceived(id_, message) if message else self._bury(id_))
                if isinstance(message, messages.Committed):
                    self._world.note_reported(message.commit)
        return events

    def adopt_workers(self, holders: Collection[HolderFile]) -> None:
        pass

    def kill_orphans(self, marks: Collection[str], dead: Collection[HolderId]) -> None:
        for mark in marks:
            self._world.alive.pop(mark, None)

    def _has_news(self) -> bool:
        is_helping = bool(self._timers or self._helping)
        return (
            is_helping
            or self.holder in self._world.draining | self._world.insisting
            or any(worker.pipe.has_news for worker in self.workers.values())
        )

    def _bury(self, id_: WorkerId) -> WorkerExited:
        worker = self.workers.pop(id_)
        if worker.is_killed:
            for mark in [mark for mark in self._world.alive if mark.startswith(worker.holder)]:
                del self._world.alive[mark]
        return WorkerExited(worker=id_, returncode=KILLED if worker.is_killed else 0, how="")
