"""Worker backend for commands.

Its workers outlive the coordinator. The limits of analysis tasks do not apply to them.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import signal
from collections.abc import Collection, Sequence

from codebatch.coordinator.processes.channels import WorkerChannels
from codebatch.coordinator.processes.helper_process import HelperProcess
from codebatch.coordinator.processes.signals import SignalCounter
from codebatch.coordinator.processes.worker_backend import DrainRequest, WorkerExited, WorkerHandle
from codebatch.coordinator.processes.workers import WorkerProcess, start_worker
from codebatch.coordinator.work.interfaces import CommandBackendEvent, ForcedStopRequested, HelperExited, TimerFired
from codebatch.coordinator.work.stopped_workers import StoppedWorkerWatch, WatchedWorker
from codebatch.model.outcome import HolderId
from codebatch.protocol.launch import ATTEMPT_VARIABLE, HOLDER_VARIABLE, WorkerSettings, attempt_mark
from codebatch.protocol.messages import Assign, MessageToWorker, Terminate
from codebatch.scheduling.events import WorkerId
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.holders import HolderFile, LeaseReader
from codebatch.store.batches.progress_cells import read_running_child
from codebatch.system.clock import running_ns, wall_ns
from codebatch.system.host import is_this_machine
from codebatch.system.processes import proc
from codebatch.system.processes.environment import original_environment
from codebatch.system.processes.memory import kill_marked
from codebatch.system.processes.processes import describe_end
from codebatch.system.processes.progress_cell import CommandProcess, ProgressCell


class ProcessCommandBackend:
    """The workers of one coordinator of a work batch. It must be used in one thread.

    Signals are handled only in the main thread. The first signal is reported as DrainRequest. The second signal
    terminates commands, with their grace period, and the third kills them. SIGHUP is ignored, so a batch continues
    without a terminal. It has many methods.
    """

    def __init__(self, batch: BatchDir, settings: WorkerSettings) -> None:
        """Set up the backend without starting a process."""
        self._batch = batch
        self._settings = settings
        self._signals = SignalCounter(hears_hangup=False)
        self._channels = WorkerChannels(self._signals)
        self._attempt_marks: dict[WorkerId, set[str]] = {}
        self._signals_seen = 0
        self._timers: list[tuple[int, int, int]] = []
        self._alarms: list[tuple[int, int, int]] = []
        self._helper: HelperProcess | None = None
        self._helper_error = ""
        self._are_old_helpers_killed = False
        self._stopped = StoppedWorkerWatch()
        self._adopted: list[WatchedWorker] = []
        self._cell: ProgressCell | None = None

    @property
    def exit_status(self) -> int:
        """130 after SIGINT, 143 after SIGTERM; 0 without a signal."""
        return self._signals.exit_status

    def begin(self) -> None:
        """Start the backend. It is called once, before all other methods except `kill_orphans` and `adopt`.

        The caller must call `end` in every case.
        """
        self._channels.begin()
        path = self._batch.root / layout.HOLDERS / layout.cell_name(self._settings.coordinator)
        self._cell = ProgressCell(self._batch.files, path, create=True)

    def end(self) -> None:
        """Close the channels.

        A worker with a running command finishes this command. The next coordinator adopts such workers.
        """
        if self._helper is not None:
            self._helper.end()
        if self._are_old_helpers_killed:  # A helper was started, and may have left processes behind.
            kill_marked(HOLDER_VARIABLE, {self._settings.coordinator})
        for worker in self._channels.workers.values():
            worker.channel.close()
            os.close(worker.stderr)
        self._channels.workers.clear()
        self._channels.close()
        if self._cell is not None:
            self._cell.close()
            self._cell = None

    def start(self, worker: WorkerId) -> WorkerHandle:
        """Start a worker. It sends Hello when it is ready for a command."""
        started = start_worker(worker, self._batch, self._settings)
        self._channels.add(started)
        return WorkerHandle(holder=started.holder, pid=started.process.pid)

    def send(self, worker: WorkerId, message: MessageToWorker) -> None:
        """Send a message. If the worker is dead, nothing is raised; its end is reported by `wait`."""
        if isinstance(message, Assign) and worker in self._channels.workers:
            holder = self._channels.workers[worker].holder
            self._attempt_marks[worker] = {
                attempt_mark(holder, one.unit.shard, one.unit.start, one.epoch) for one in (message, *message.then)
            }
        if isinstance(message, Terminate) and worker in self._channels.workers:
            # A stopped process must be continued first. Otherwise, it could not read the message.
            _send_signal(self._channels.workers[worker].process.pid, signal.SIGCONT)
        self._channels.send(worker, message)

    def wait(self) -> list[CommandBackendEvent]:
        """Wait at most 0.1 s. Return the events since the last call, in order. Report that this process responds."""
        if self._cell is not None:
            self._cell.restart_step(running_ns())
        received, _ = self._channels.receive()
        events: list[CommandBackendEvent] = [
            self._reap_worker(event) if isinstance(event, WorkerProcess) else event for event in received
        ]
        return events + self._read_signals() + self._read_timers() + self._read_helper() + self._check_stopped()

    def set_timer(self, item: int, round_: int, seconds: float, until_ns: int = 0) -> None:
        """Schedule the event TimerFired for an attempt.

        It is reported after `seconds` of running time or, if `until_ns` is set, at this wall-clock time.
        """
        if until_ns:
            heapq.heappush(self._alarms, (until_ns, item, round_))
        else:
            heapq.heappush(self._timers, (running_ns() + round(seconds * 1e9), item, round_))

    def start_helper(self, arguments: Sequence[str], input_bytes: bytes, seconds: float) -> None:
        """Run a helper program in the background. Its end is reported as HelperExited.

        The first call also kills helper programs of dead coordinators.
        """
        if not self._are_old_helpers_killed:
            holders = LeaseReader(self._batch.files, self._batch.root).read_holders()
            dead = {holder.holder for holder, is_live in holders if not is_live and holder.role == "coordinator"}
            kill_marked(HOLDER_VARIABLE, dead)
            self._are_old_helpers_killed = True
        environment = {**original_environment(), HOLDER_VARIABLE: self._settings.coordinator}
        try:
            self._helper = HelperProcess(arguments, input_bytes, seconds, environment)
        except (OSError, ValueError) as error:
            self._helper_error = f"cannot be started: {error}"

    def _check_stopped(self) -> list[CommandBackendEvent]:
        workers = {worker.holder: worker for worker in self._channels.workers.values()}
        watched_workers = [self._make_watched(holder, worker.process.pid) for holder, worker in workers.items()]
        all_stopped = self._stopped.check(running_ns(), watched_workers + self._adopted)
        for stopped in all_stopped:
            if stopped.is_killed and stopped.holder in workers:
                workers[stopped.holder].killed_for = "stopped"
        return [*all_stopped]

    def _make_watched(self, holder: HolderId, pid: int) -> WatchedWorker:
        return WatchedWorker(holder, pid, self._batch.root / layout.HOLDERS / holder)

    def _read_timers(self) -> list[CommandBackendEvent]:
        events: list[CommandBackendEvent] = []
        for waiting, now_ns in ((self._timers, running_ns()), (self._alarms, wall_ns())):
            while waiting and waiting[0][0] <= now_ns:
                _, item, round_ = heapq.heappop(waiting)
                events.append(TimerFired(item, round_))
        return events

    def _read_helper(self) -> list[CommandBackendEvent]:
        if self._helper_error:
            problem, self._helper_error = self._helper_error, ""
            return [HelperExited(None, problem)]
        if self._helper is None or not self._helper.has_ended():
            return []
        helper, self._helper = self._helper, None
        return [HelperExited(helper.output, helper.problem)]

    def adopt_workers(self, holders: Collection[HolderFile]) -> None:
        """Adopt live workers of an earlier coordinator.

        If the earlier coordinator had stopped them and their commands (Ctrl-Z), they are continued.
        """
        for holder in holders:
            if is_this_machine(holder.host):
                self._signal_child(read_running_child(self._batch, holder.holder), signal.SIGCONT)
                _send_signal(holder.pid, signal.SIGCONT)
                self._adopted.append(self._make_watched(holder.holder, holder.pid))

    def kill_orphans(self, marks: Collection[str], dead: Collection[HolderId]) -> None:
        """Kill orphans of dead workers: the process groups of their commands, and all processes with one of the marks.

        A mark is an environment variable that identifies an attempt. Child processes inherit it.
        """
        for holder in dead:
            self._signal_child(read_running_child(self._batch, holder), signal.SIGKILL)
        if marks:
            kill_marked(ATTEMPT_VARIABLE, marks)

    def _reap_worker(self, worker: WorkerProcess) -> WorkerExited:
        self._channels.remove(worker)
        marks = self._attempt_marks.pop(worker.id, None)
        child = read_running_child(self._batch, worker.holder)
        # The command may trace the worker with ptrace(2). The worker can then be reaped only after the command is
        # killed.
        if worker.killed_for == "stopped":
            self._kill_command(child, marks)
        death = worker.reap_and_kill_group()
        if death.returncode != 0:
            self._kill_command(child, marks)
        return WorkerExited(
            worker=worker.id,
            returncode=death.returncode,
            how=describe_end(death.returncode),
            killed_for=worker.killed_for,
            stderr=worker.stderr_text,
            memory_peak_bytes=death.memory_peak_bytes,
        )

    def _kill_command(self, child: CommandProcess | None, marks: Collection[str] | None) -> None:
        self._signal_child(child, signal.SIGKILL)
        if marks is not None:
            kill_marked(ATTEMPT_VARIABLE, marks)

    @staticmethod
    def _signal_child(child: CommandProcess | None, number: int) -> None:
        """Send a signal to the process group of a command, unless its process ID now belongs to another process."""
        if child is None or proc.process_start_ticks(child.pid) != child.start_ticks:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)

    def _read_signals(self) -> list[CommandBackendEvent]:
        if self._signals.is_suspension_asked:
            self._suspend_all()
        seen_before, self._signals_seen = self._signals_seen, self._signals.count
        if self._signals_seen == seen_before:
            return []
        is_killed = self._signals_seen > 2
        for worker in self._channels.workers.values() if is_killed else ():
            worker.kill("interrupted")
        assert self._signals.first is not None, "a signal was counted"
        reason = self._signals.first.name
        requests: list[CommandBackendEvent] = [] if seen_before else [DrainRequest(reason)]
        return requests if self._signals_seen == 1 else [*requests, ForcedStopRequested(reason, is_killed)]

    def _suspend_all(self) -> None:
        """React to Ctrl-Z: stop the workers and commands, then this process.

        When this process continues, continue the workers and commands.
        """
        self._signal_all(signal.SIGSTOP)
        self._signals.suspend_process()
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: int) -> None:
        for worker in self._channels.workers.values():
            _send_signal(worker.process.pid, number)
            self._signal_child(read_running_child(self._batch, worker.holder), number)


def _send_signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
