"""Workers' channels and standard errors, and our signals: one selector hears all of them."""

from __future__ import annotations

import contextlib
import selectors

from codebatch.coordinator.processes.signals import SignalCounter
from codebatch.coordinator.processes.worker_backend import MessageReceived
from codebatch.coordinator.processes.workers import WorkerProcess
from codebatch.protocol.messages import ToWorker
from codebatch.scheduling.events import WorkerId

TICK_SECONDS = 0.1


class Channels:
    """The workers that live, from `begin` to `close`."""

    def __init__(self, signals: SignalCounter) -> None:
        self.workers: dict[WorkerId, WorkerProcess] = {}
        self._signals = signals

    def begin(self) -> None:
        """Hear signals from now on."""
        self._selector = selectors.DefaultSelector()
        self._signals.begin()
        self._selector.register(self._signals.wakeup, selectors.EVENT_READ, None)

    def close(self) -> None:
        """Hear nothing more, and leave signals to whom they were for before."""
        with contextlib.ExitStack() as ending:
            ending.callback(self._signals.end)
            ending.callback(self._selector.close)

    def add(self, worker: WorkerProcess) -> None:
        """Hear a worker."""
        self.workers[worker.id] = worker
        self._selector.register(worker.channel, selectors.EVENT_READ, worker)
        self._selector.register(worker.stderr, selectors.EVENT_READ, worker)

    def remove(self, worker: WorkerProcess) -> None:
        """Hear a worker no more."""
        del self.workers[worker.id]
        self._selector.unregister(worker.channel)
        if worker.stderr in self._selector.get_map():
            self._selector.unregister(worker.stderr)

    def send(self, worker: WorkerId, message: ToWorker) -> None:
        """Send a message, where there is somebody to receive it."""
        if worker in self.workers:
            self.workers[worker].send(message)

    def hear(self) -> tuple[list[MessageReceived | WorkerProcess], bool]:
        """What was said, in order, and workers that are dead or about to be; waits for a tenth of a second at most.

        And whether anything came.
        """
        ready = self._selector.select(TICK_SECONDS)
        heard: list[MessageReceived | WorkerProcess] = []
        ended: list[WorkerProcess] = []
        for key, _ in ready:
            if key.data is None:
                self._signals.clear()
            elif key.fileobj is not key.data.channel:
                if not key.data.read_stderr():
                    self._selector.unregister(key.fd)
            elif not self._receive(key.data, heard):
                ended.append(key.data)
        known = {worker.id for worker in ended}
        dead = [worker for worker in self.workers.values() if worker.id not in known and worker.has_ended]
        ended += [worker for worker in dead if not self._receive(worker, heard)]
        return [*heard, *ended], bool(ready)

    @staticmethod
    def _receive(worker: WorkerProcess, heard: list[MessageReceived | WorkerProcess]) -> bool:
        """Add what a worker said; False where it has nothing left to say."""
        received = worker.receive()
        heard += [MessageReceived(worker.id, message) for message in received or ()]
        return received is not None
