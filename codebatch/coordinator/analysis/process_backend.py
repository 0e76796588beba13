"""The worker backend of an analysis: processes on this machine.

One selector waits for channels, standard errors and signals.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable

from codebatch.coordinator.processes.channels import WorkerChannels
from codebatch.coordinator.processes.descriptors import enough_descriptors
from codebatch.coordinator.processes.limits import ResourceGuard, ResourceLimits
from codebatch.coordinator.processes.signals import SignalCounter
from codebatch.coordinator.processes.worker_backend import (
    DrainRequest,
    TickPassed,
    WorkerEvent,
    WorkerExited,
    WorkerHandle,
)
from codebatch.coordinator.processes.workers import WorkerProcess, start_worker
from codebatch.coordinator.work.stopped_workers import StoppedWorkerWatch, WatchedWorker
from codebatch.errors import StoreError
from codebatch.model.outcome import HolderId
from codebatch.protocol.launch import HOLDER_VARIABLE, WorkerSettings
from codebatch.protocol.messages import MessageToWorker
from codebatch.scheduling.events import WorkerId
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.holders import HolderFile
from codebatch.store.work.requests import is_cancelled
from codebatch.system.processes.memory import kill_marked
from codebatch.system.processes.processes import OrphanReaper, describe_end, kill_group
from codebatch.system.processes.progress_cell import WorkerStep
from codebatch.system.stopwatch import OBSERVATION_GAP_SECONDS_MAX

_REQUESTS_POLL_NS = 200_000_000
_TICK_NS = 100_000_000


class ProcessWorkerBackend:
    """Implementation of WorkerBackend with processes. It must be used in one thread.

    Signals are handled only in the main thread. The first signal is reported as DrainRequest. The second signal
    terminates the process groups of the workers and the third kills them. A Cancel request of the batch is also
    reported as DrainRequest.
    """

    def __init__(
        self,
        batch: BatchDir,
        settings: WorkerSettings,
        *,
        limits: ResourceLimits,
        workers_max: int,
        running_ns: Callable[[], int],
    ) -> None:
        """Set up the backend without starting a process.

        `running_ns` is a clock that stops while the system is suspended. At most `workers_max` workers are alive at the
        same time.
        """
        self._batch = batch
        self._settings = settings
        self._guard = ResourceGuard(limits)
        self._workers_max = workers_max
        self._descriptors = contextlib.ExitStack()
        self._running_ns = running_ns
        self._holders: set[HolderId] = set()
        self._signals = SignalCounter()
        self._channels = WorkerChannels(self._signals)
        self._workers = self._channels.workers
        self._signals_seen = 0
        self._requests_looked_ns = 0
        self._is_cancelled = False
        self._stopped = StoppedWorkerWatch(kills=False)

    @property
    def exit_status(self) -> int:
        """130 after SIGINT, 143 after SIGTERM, 129 after SIGHUP; 0 without a signal."""
        return self._signals.exit_status

    def begin(self) -> None:
        self._orphans = OrphanReaper()
        self._ticked_ns = self._running_ns()
        self._channels.begin()

    def end(self) -> None:
        """Kill all workers, and the detached processes that tasks started.

        If one step fails, the remaining steps are executed nevertheless.
        """
        with contextlib.ExitStack() as ending:
            ending.callback(self._channels.close)
            ending.callback(self._descriptors.close)
            ending.callback(self._orphans.kill_all)
            if self._holders:
                ending.callback(kill_marked, HOLDER_VARIABLE, self._holders)
            for worker in self._workers.values():
                ending.callback(worker.reap_and_kill_group)
                worker.kill("abandoned")
            self._workers.clear()

    def start(self, worker: WorkerId) -> WorkerHandle:
        if not self._holders:
            self._descriptors.enter_context(enough_descriptors(self._workers_max))
        started = start_worker(worker, self._batch, self._settings)
        self._channels.add(started)
        self._holders.add(started.holder)
        return WorkerHandle(holder=started.holder, pid=started.process.pid)

    def send(self, worker: WorkerId, message: MessageToWorker) -> None:
        self._channels.send(worker, message)

    def wait(self) -> list[WorkerEvent | TickPassed]:
        received, is_any = self._channels.receive()
        self._guard.begin_turn(self._running_ns() / 1e9)
        events: list[WorkerEvent | TickPassed] = [
            self._reap_worker(event) if isinstance(event, WorkerProcess) else event for event in received
        ]
        events += self._read_signals()
        events += self._read_requests()
        events += self._make_tick()
        self._guard.enforce_limits(self._workers.values())
        self._continue_stopped()
        if not is_any:
            self._orphans.reap_ended([worker.process.pid for worker in self._workers.values()])
        return events

    def _continue_stopped(self) -> None:
        """Continue workers that their programs have stopped, so that they enforce the time limits of these programs."""
        watched = (
            WatchedWorker(worker.holder, worker.process.pid, self._batch.root / layout.HOLDERS / worker.holder)
            for worker in self._workers.values()
        )
        self._stopped.check(self._running_ns(), watched)

    def step(self, worker: WorkerId) -> WorkerStep | None:
        return self._workers[worker].step() if worker in self._workers else None

    def is_holder_stuck(self, holder: HolderFile) -> bool:
        return self._guard.is_holder_stuck(self._batch, holder)

    def is_holder_silent(self, holder: HolderFile, commits: int) -> bool:
        return self._guard.is_holder_silent(self._batch, holder, commits)

    def kill_orphans(self, dead: set[HolderId]) -> None:
        if dead:
            kill_marked(HOLDER_VARIABLE, dead)

    def _reap_worker(self, worker: WorkerProcess) -> WorkerExited:
        self._channels.remove(worker)
        step = worker.step()
        death = worker.reap_and_kill_group()
        reason, is_from_outside = self._guard.death_reason(worker, death)
        return WorkerExited(
            worker=worker.id,
            returncode=death.returncode,
            how=describe_end(death.returncode),
            killed_for=worker.killed_for,
            reason=reason,
            is_from_outside=is_from_outside,
            step=step,
            stderr=worker.stderr_text,
            memory_peak_bytes=death.memory_peak_bytes,
        )

    def _read_signals(self) -> list[WorkerEvent]:
        if self._signals.is_suspension_asked:
            self._suspend_all()
        seen_before, self._signals_seen = self._signals_seen, self._signals.count
        if self._signals_seen > max(seen_before, 1):
            number = signal.SIGTERM if self._signals_seen == 2 else signal.SIGKILL
            for worker in self._workers.values():
                worker.kill("interrupted", number)
        if seen_before or not self._signals_seen:
            return []
        assert self._signals.first is not None, "a signal was counted"
        return [DrainRequest(self._signals.first.name)]

    def _read_requests(self) -> list[WorkerEvent]:
        """Return a drain request if the batch has a Cancel request.

        Each run withdraws earlier Cancel requests when it starts, so any request that is found is current.
        """
        if self._is_cancelled or self._running_ns() - self._requests_looked_ns < _REQUESTS_POLL_NS:
            return []
        self._requests_looked_ns = self._running_ns()
        with contextlib.suppress(StoreError):  # A damaged requests file is ignored.
            self._is_cancelled = is_cancelled(self._batch.files, self._batch.root)
        return [DrainRequest("cancel")] if self._is_cancelled else []

    def _make_tick(self) -> list[TickPassed]:
        passed_ns = self._running_ns() - self._ticked_ns
        if passed_ns < _TICK_NS:
            return []
        self._ticked_ns += passed_ns
        return [TickPassed(min(passed_ns / 1e9, OBSERVATION_GAP_SECONDS_MAX))]

    def _suspend_all(self) -> None:
        """React to Ctrl-Z: stop the workers, then this process. When this process continues, continue the workers."""
        for worker in self._workers.values():
            kill_group(worker.process, signal.SIGSTOP)
        self._signals.suspend_process()
        for worker in self._workers.values():
            kill_group(worker.process, signal.SIGCONT)
