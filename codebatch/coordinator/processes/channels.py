"""One selector for the channels and standard errors of workers, and for the signals of the coordinator."""

from __future__ import annotations

import contextlib
import selectors

from codebatch.coordinator.processes.signals import SignalCounter
from codebatch.coordinator.processes.worker_backend import MessageReceived
from codebatch.coordinator.processes.workers import WorkerProcess
from codebatch.protocol.messages import MessageToWorker
from codebatch.scheduling.events import WorkerId

TICK_SECONDS = 0.1


class WorkerChannels:
    """The channels of all live workers. They can be used from `begin` to `close`."""

    def __init__(self, signals: SignalCounter) -> None:
        self.workers: dict[WorkerId, WorkerProcess] = {}
        self._signals = signals

    def begin(self) -> None:
        """Open the selector and start to handle signals."""
        self._selector = selectors.DefaultSelector()
        self._signals.begin()
        self._selector.register(self._signals.wakeup, selectors.EVENT_READ, None)

    def close(self) -> None:
        """Close the selector and restore the previous signal handlers."""
        with contextlib.ExitStack() as ending:
            ending.callback(self._signals.end)
            ending.callback(self._selector.close)

    def add(self, worker: WorkerProcess) -> None:
        """Add a worker to the selector."""
        self.workers[worker.id] = worker
        self._selector.register(worker.channel, selectors.EVENT_READ, worker)
        self._selector.register(worker.stderr, selectors.EVENT_READ, worker)

    def remove(self, worker: WorkerProcess) -> None:
        """Remove a worker from the selector."""
        del self.workers[worker.id]
        self._selector.unregister(worker.channel)
        if worker.stderr in self._selector.get_map():
            self._selector.unregister(worker.stderr)

    def send(self, worker: WorkerId, message: MessageToWorker) -> None:
        """Send a message. If the worker is removed, do nothing."""
        if worker in self.workers:
            self.workers[worker].send(message)

    def receive(self) -> tuple[list[MessageReceived | WorkerProcess], bool]:
        """Wait at most 0.1 s for messages.

        Return a list, and whether there was anything to read. The list has the received messages in order, then the
        workers that have ended.
        """
        ready = self._selector.select(TICK_SECONDS)
        events: list[MessageReceived | WorkerProcess] = []
        ended: list[WorkerProcess] = []
        for key, _ in ready:
            if key.data is None:
                self._signals.drain_wakeup()
            elif key.fileobj is not key.data.channel:
                if not key.data.read_stderr():
                    self._selector.unregister(key.fd)
            elif not self._receive_from_worker(key.data, events):
                ended.append(key.data)
        known = {worker.id for worker in ended}
        dead = [worker for worker in self.workers.values() if worker.id not in known and worker.has_ended]
        ended += [worker for worker in dead if not self._receive_from_worker(worker, events)]
        return [*events, *ended], bool(ready)

    @staticmethod
    def _receive_from_worker(worker: WorkerProcess, events: list[MessageReceived | WorkerProcess]) -> bool:
        """Append the messages of a worker to `events`. Return False if the worker will send no more messages."""
        received = worker.receive()
        events += [MessageReceived(worker.id, message) for message in received or ()]
        return received is not None
