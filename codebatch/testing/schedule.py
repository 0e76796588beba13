"""Processes of a simulation: threads of which one runs at a time, and a seed that says which, call by call.

Each process stops before every system call and every message. Then `before` may kill it, let its call fail, kill or
pause others, or cut the power; after that the seed says who goes on. Equal seeds give equal runs.
"""

from __future__ import annotations

import queue
import random
import threading
from collections.abc import Callable
from typing import NoReturn

from codebatch.system.files.system_calls import SystemCalls
from codebatch.testing.calls import Fate, Operation, WatchedCalls
from codebatch.testing.disk import Disk

PATIENCE_NS = 100_000_000
PATIENCE_STEPS = 10
STEP_NS = 1_000


class Killed(BaseException):
    """SIGKILL. Whatever the process still tries while this unwinds it is killed again, so nothing more happens."""


class SimulationError(AssertionError):
    """The processes of a simulation cannot end: all wait for each other, or they took too many steps."""


Body = Callable[["Process"], None]


class Process:
    """A process of a simulation."""

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
        """Whether it is stopped, as by SIGSTOP."""
        return self.paused_until > self._schedule.steps

    @property
    def is_doomed(self) -> bool:
        """Whether it was killed, be it that what it had begun still unwinds."""
        return self._is_dying or not self.is_alive

    def step(self, operation: Operation) -> Fate | None:
        """What stands before each call: the place where everything may happen. Raises Killed."""
        if self._is_dying or not self.is_alive:
            raise Killed
        self._schedule.hand_over(self)
        self._go_on()
        fate = self._schedule.before_call(self, operation)
        while fate is None and self._schedule.must_stop(self):
            self._schedule.hand_over(self)
            self._go_on()
            fate = self._schedule.before_call(self, operation)
        if fate is not None and isinstance(fate.error, Killed):
            self._is_dying = True
        return fate

    def wait(self, condition: Callable[[], bool], *, is_patient: bool) -> bool:
        """Let others run until the condition holds; without patience at most until a tick of the clock: then False."""
        if self.is_doomed:
            raise Killed
        self.condition, self.is_patient = condition, is_patient
        self._schedule.hand_over(self, is_leaving=True)
        self._go_on()
        return condition()

    def die(self) -> NoReturn:
        """End here and now, from within, as a process that crashes."""
        self._is_dying = True
        raise Killed

    def pause(self, steps: int) -> None:
        """Stop it for so many steps of others."""
        self.paused_until = self._schedule.steps + steps

    def when_ended(self, act: Callable[[], None]) -> None:
        """Have something done at its end, however it ends: the other side of a pipe learns of it so."""
        self._ends.append(act)

    def kill(self) -> None:
        """SIGKILL. Only for the process that has the baton, or for the owner of the simulation in `before`."""
        self._end()
        self.baton.put(None)

    def _end(self) -> None:
        if self.is_alive:
            self.is_alive = False
            self._disk_calls.exit()
            for act in self._ends:
                act()

    def _go_on(self) -> None:
        self.condition = None
        if not self.is_alive:
            raise Killed

    def _run(self) -> None:
        self.baton.get()
        error: BaseException | None = None
        try:
            self._go_on()
            self._body(self)
        except Killed:
            pass
        except BaseException as caught:
            error = caught
        if self.is_alive:
            self._end()
            self._schedule.leave(error)


class Schedule:
    """Runs processes over one disk, one at a time. `chance` decides who goes on; `before` may do anything else."""

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
        """A new process; it begins when its turn comes."""
        process = Process(self, name, body)
        self.processes.append(process)
        self._threads.append(process.thread)
        process.thread.start()
        return process

    def run(self) -> None:
        """Run until every process has ended. Raises what a process raised, or SimulationError."""
        chosen = self._choose()
        if chosen is not None:
            chosen.baton.put(None)
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
        """Count a step and let the owner of the simulation decide what becomes of it; an error there ends it all."""
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
        """Whether the process that has the baton cannot go on."""
        return process.paused_until > self.steps or not process.is_alive or self._error is not None

    def hand_over(self, process: Process, *, is_leaving: bool = False) -> None:
        """Give the baton to whoever is next, and wait until it comes back."""
        if not (is_leaving or self.must_stop(process)) and self._chance.random() > self._switch_rate:
            return
        chosen = self._choose()
        if chosen is process:
            return
        (chosen.baton if chosen else self._main).put(None)
        if process.is_alive:
            process.baton.get()

    def leave(self, error: BaseException | None) -> None:
        """A process has ended and gives its baton on; an error ends the simulation."""
        self._error = self._error or error
        chosen = self._choose()
        (chosen.baton if chosen else self._main).put(None)

    def _choose(self) -> Process | None:
        """Who goes on: at random who can; else a tick passes; else the sleepers wake. None where nobody is left."""
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
            asleep = [process for process in self.processes if process.is_paused]
            if not asleep:
                break
            self.steps = min(process.paused_until for process in asleep)
        if self.processes:
            names = ", ".join(process.name for process in self.processes)
            self._error = self._error or SimulationError(f"after {self.steps} steps all wait for each other: {names}")
        return None
