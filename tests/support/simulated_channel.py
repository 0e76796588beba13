"""The channel and the progress cell of a simulated worker. Messages sent before its death can be read after it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from codebatch.protocol.messages import (
    MessageFromWorker,
    MessageToWorker,
    decode_from_worker,
    decode_to_worker,
    encode_message,
)
from codebatch.system.processes.progress_cell import (
    PHASE_IDLE,
    PHASE_ITEM,
    PHASE_LEASE,
    PHASE_PROJECT,
    ProgressCell,
    WorkerStep,
)
from codebatch_workers.runtime.channel import CoordinatorChannel, CoordinatorLost
from tests.support.schedule import Process

PREFIX_BYTES = 4
STDERR = 2


class Pipe:
    """The encoded messages in transit between a coordinator and one worker."""

    def __init__(self) -> None:
        self.to_worker: deque[bytes] = deque()
        self.to_coordinator: deque[bytes] = deque()
        self.is_worker_gone = False
        self.is_coordinator_gone = False

    @property
    def has_news(self) -> bool:
        """True if the coordinator would read a message or the end of the channel."""
        return bool(self.to_coordinator) or self.is_worker_gone

    def send(self, message: MessageToWorker) -> None:
        """Send a message to the worker. If the worker is gone, the message is lost without an error."""
        self.to_worker.append(encode_message(message))

    def receive(self) -> MessageFromWorker | None:
        """Return the next message to the coordinator, or None at the end of the channel."""
        return decode_from_worker(self.to_coordinator.popleft()[PREFIX_BYTES:]) if self.to_coordinator else None


class SimulatedChannel(CoordinatorChannel):
    """The worker's end of a channel."""

    def __init__(self, process: Process, pipe: Pipe) -> None:
        self._process = process
        self._pipe = pipe

    def fileno(self) -> int:
        return STDERR

    def send(self, *messages: MessageFromWorker) -> None:
        for message in messages:
            # Let other processes run, because a real worker can die between two messages.
            self._process.wait(lambda: True, is_patient=True)
            if self._pipe.is_coordinator_gone:
                raise CoordinatorLost
            self._pipe.to_coordinator.append(encode_message(message))

    def receive(self) -> MessageToWorker:
        self._process.wait(lambda: bool(self._pipe.to_worker) or self._pipe.is_coordinator_gone, is_patient=True)
        if not self._pipe.to_worker:
            raise CoordinatorLost
        return decode_to_worker(self._pipe.to_worker.popleft()[PREFIX_BYTES:])

    def try_receive(self) -> MessageToWorker | None:
        if self._pipe.is_coordinator_gone:
            raise CoordinatorLost
        return decode_to_worker(self._pipe.to_worker.popleft()[PREFIX_BYTES:]) if self._pipe.to_worker else None


class SimulatedCell(ProgressCell):
    """A progress cell that two simulated processes share. It calls `when_begun` when the work on a unit begins."""

    def __init__(self, when_begun: Callable[[], None]) -> None:
        self._step = WorkerStep(0, 0, 0, 0, 0, 0, PHASE_IDLE)
        self._when_begun = when_begun

    def write_step(self, step: WorkerStep) -> None:
        if step.phase in (PHASE_ITEM, PHASE_PROJECT) and self._step.phase == PHASE_LEASE:
            self._when_begun()
        self._step = step

    def write_task(self, task: int) -> None:
        self._step = self._step._replace(task=task)

    def read(self) -> WorkerStep:
        return self._step

    def close(self) -> None:
        pass
