"""Simulated processes: threads that run one at a time, with switches chosen by a seed at every call.

Each process stops before every system call and every message. There `before` may kill it, fail its call, kill or pause
others, or cut the power. Then the seed chooses the process that continues. Equal seeds give equal runs.
"""

from __future__ import annotations

import queue
import random
import threading
from collections.abc import Callable
from typing import NoReturn

from codebatch.system.files.system_calls import SystemCalls
from tests.support.calls import Fate, Operation, WatchedCalls
from tests.support.disk import Disk

PATIENCE_NS = 100_000_000
PATIENCE_STEPS = 10
STEP_NS = 1_000


class Killed(BaseException):
    """SIGKILL. Every call that the process makes during unwinding raises this again, so it has no further effect."""


class SimulationError(AssertionError):
    """The simulation cannot end: all processes wait for each other, or the limit of steps is reached."""


Body = Callable[["Process"], None]


class Process:
    """A simulated process."""

    def __init__(self, schedule: Schedule, name: str, body: Body) -> None:
        self.name = name
        self.is_alive = True
        self.paused_until = 0
        self.condition: Callable[[], bool] | None = None
        self.is_patient = True
        self.baton: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._disk_calls = schedule.disk.calls()
        self.calls: SystemCalls = WatchedCalls(self._disk_calls, self.step)
        self._schedule = schedule
        self._body = body
        self._is_dying = False
        self._ends: list[Callable[[], None]] = []
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def is_paused(self) -> bool:
        """True if the process is stopped, as by SIGSTOP."""
        return self.paused_until > self._schedule.steps

    @property
    def is_doomed(self) -> bool:
        """True if the process was killed, even if its stack still unwinds."""
        return self._is_dying or not self.is_alive

    def step(self, operation: Operation) -> Fate | None:
        """Run before each call: switch processes and inject faults. Raises Killed."""
        if self._is_dying or not self.is_alive:
            raise Killed
        self._schedule.hand_over(self)
        self._check_alive()
        fate = self._schedule.before_call(self, operation)
        while fate is None and self._schedule.must_stop(self):
            self._schedule.hand_over(self)
            self._check_alive()
            fate = self._schedule.before_call(self, operation)
        if fate is not None and isinstance(fate.error, Killed):
            self._is_dying = True
        return fate

    def wait(self, condition: Callable[[], bool], *, is_patient: bool) -> bool:
        """Let other processes run until the condition is true, and return whether it is.

        Unless `is_patient`, also return at the next tick of the clock.
        """
        if self.is_doomed:
            raise Killed
        self.condition, self.is_patient = condition, is_patient
        self._schedule.hand_over(self, is_leaving=True)
        self._check_alive()
        return condition()

    def die(self) -> NoReturn:
        """Crash the process from within. Raises Killed."""
        self._is_dying = True
        raise Killed

    def pause(self, steps: int) -> None:
        """Stop the process for a number of steps of others."""
        self.paused_until = self._schedule.steps + steps

    def when_ended(self, act: Callable[[], None]) -> None:
        """Call a function when the process ends in any way, such as to close the other end of a pipe."""
        self._ends.append(act)

    def kill(self) -> None:
        """Kill the process as by SIGKILL. Only the running process or the simulation in `before` may call this."""
        self._end()
        self.baton.put(None)

    def _end(self) -> None:
        if self.is_alive:
            self.is_alive = False
            self._disk_calls.exit()
            for act in self._ends:
                act()

    def _check_alive(self) -> None:
        self.condition = None
        if not self.is_alive:
            raise Killed

    def _run(self) -> None:
        self.baton.get()
        error: BaseException | None = None
        try:
            self._check_alive()
            self._body(self)
        except Killed:
            pass
        except BaseException as caught:
            error = caught
        if self.is_alive:
            self._end()
            self._schedule.leave(error)


class Schedule:
    """A scheduler of processes on one disk, one at a time. `chance` chooses the next. `before` may inject faults."""

    def __init__(
        self,
        disk: Disk,
        chance: random.Random,
        before: Callable[[Process, Operation], Fate | None],
        *,
        switch_rate: float,
        steps_max: int,
    ) -> None:
        self.disk = disk
        self.steps = 0
        self.now_ns = 0
        self.processes: list[Process] = []
        self._chance = chance
        self._before = before
        self._switch_rate = switch_rate
        self._steps_max = steps_max
        self._main: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._threads: list[threading.Thread] = []

    def start(self, name: str, body: Body) -> Process:
        """Create a process. It begins when it is scheduled."""
        process = Process(self, name, body)
        self.processes.append(process)
        self._threads.append(process.thread)
        process.thread.start()
        return process

    def run(self) -> None:
        """Run until all processes have ended. Raises the first error of a process, or SimulationError."""
        next_process = self._choose()
        if next_process is not None:
            next_process.baton.put(None)
            self._main.get()
        for process in self.processes:
            if process.is_alive:
                process.kill()
        for thread in self._threads:
            thread.join()
        self.processes.clear()
        self._threads.clear()
        if self._error is not None:
            raise self._error

    def before_call(self, process: Process, operation: Operation) -> Fate | None:
        """Count a step and call `before`. An error in `before` ends the simulation."""
        self.steps += 1
        self.now_ns += STEP_NS
        try:
            if self.steps > self._steps_max:
                raise SimulationError(f"no end after {self.steps} steps")
            return self._before(process, operation)
        except Exception as error:
            self._error = self._error or error
            return None

    def must_stop(self, process: Process) -> bool:
        """Return whether the running process cannot continue."""
        return process.paused_until > self.steps or not process.is_alive or self._error is not None

    def hand_over(self, process: Process, *, is_leaving: bool = False) -> None:
        """Pass the baton to the next process, and wait for its return."""
        if not (is_leaving or self.must_stop(process)) and self._chance.random() > self._switch_rate:
            return
        next_process = self._choose()
        if next_process is process:
            return
        (next_process.baton if next_process else self._main).put(None)
        if process.is_alive:
            process.baton.get()

    def leave(self, error: BaseException | None) -> None:
        """Pass the baton on after a process has ended. An error ends the simulation."""
        self._error = self._error or error
        next_process = self._choose()
        (next_process.baton if next_process else self._main).put(None)

    def _choose(self) -> Process | None:
        """Choose the next process, or None if none is left.

        A ready process is chosen at random. If there is none, the clock ticks; if none waits for a tick, paused
        processes wake.
        """
        self.processes = [process for process in self.processes if process.is_alive]
        while self.processes and self._error is None:
            awake = [process for process in self.processes if not process.is_paused]
            ready = [process for process in awake if process.condition is None or process.condition()]
            ticking = [process for process in awake if not process.is_patient and process not in ready]
            if ready and not (ticking and self._chance.random() < 0.02):
                return self._chance.choice(ready)
            if ticking and self.steps > self._steps_max:
                break
            if ticking:
                self.now_ns += PATIENCE_NS
                self.steps += PATIENCE_STEPS
                return self._chance.choice(ticking)
            paused = [process for process in self.processes if process.is_paused]
            if not paused:
                break
            self.steps = min(process.paused_until for process in paused)
        if self.processes:
            names = ", ".join(process.name for process in self.processes)
            self._error = self._error or SimulationError(f"after {self.steps} steps all wait for each other: {names}")
        return None
