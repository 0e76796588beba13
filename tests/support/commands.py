"""Simulated commands with scripted behavior, on a simulated clock.

`tests/commands/test_contract.py` runs the same contract tests on these and on real commands.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from codebatch.system.processes.command_processes import ProcessEnded, ProcessNotStarted, ProcessStart

NS = 1_000_000_000


class Writes(msgspec.Struct, frozen=True):
    """The command writes to its output."""

    data: bytes


class Takes(msgspec.Struct, frozen=True):
    """The command works or waits for a time."""

    seconds: float


class Ignores(msgspec.Struct, frozen=True):
    """The command ignores a signal from now on."""

    number: int


class Leaves(msgspec.Struct, frozen=True):
    """The command starts another process, which keeps running, perhaps in a separate session."""

    name: str
    is_detached: bool = False


class Holds(msgspec.Struct, frozen=True):
    """The command has this much resident memory from now on."""

    resident_bytes: int


class Exits(msgspec.Struct, frozen=True):
    """The command ends. A negative status means a signal."""

    status: int


Act = Writes | Takes | Ignores | Leaves | Holds | Exits
"""One step of a command. After its last step it exits with status 0."""


@dataclass(slots=True)
class _Group:
    """The processes of one attempt: the command until it ends, and those that it left behind, by pid."""

    mark: str
    status: int | None = None
    left: dict[int, Leaves] = field(default_factory=dict)


class Machine:
    """A machine on which commands run. They outlive the process that started them."""

    def __init__(
        self,
        programs: Mapping[tuple[str, ...], Sequence[Act]],
        now_ns: Callable[[], int],
        wait: Callable[[float, Callable[[], bool]], None],
    ) -> None:
        """`programs` maps argument vectors to their steps. `now_ns` is the clock.

        `wait` lets at most `seconds` pass, until the condition is true.
        """
        self.programs = programs
        self.now_ns = now_ns
        self.wait = wait
        self._groups: dict[str, _Group] = {}
        self._pids = 1

    @property
    def alive(self) -> list[str]:
        """The marks of attempts with live processes."""
        return [mark for mark, group in self._groups.items() if group.status is None or group.left]

    def kill_marked(self, marks: Collection[str]) -> None:
        """Send SIGKILL to all processes of attempts."""
        for mark in marks:
            group = self._groups.get(mark)
            if group is not None:
                group.left.clear()
                group.status = -signal.SIGKILL if group.status is None else group.status

    def new_pid(self) -> int:
        """Return an unused process id."""
        self._pids += 1
        return self._pids

    def add(self, mark: str) -> _Group:
        """Register a new attempt."""
        assert mark not in self._groups, f"{mark} runs twice"
        self._groups[mark] = _Group(mark)
        return self._groups[mark]


class TwinCommands:
    """Implementation of Commands on a simulated machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def start(self, start: ProcessStart) -> TwinRunning:
        acts = self._machine.programs.get(tuple(start.arguments))
        if acts is None:
            raise ProcessNotStarted(f"{start.arguments[0]}: No such file or directory")
        return TwinRunning(self._machine, self._machine.add(start.mark), acts)


class TwinRunning:
    """Implementation of Running. Each method call first performs the steps that are due."""

    def __init__(self, machine: Machine, group: _Group, acts: Sequence[Act]) -> None:
        self._machine = machine
        self._group = group
        self.pid = machine.new_pid()
        self.start_ticks = machine.now_ns() // NS
        self._acts = list(acts)
        self._due_ns = machine.now_ns()
        self._output = b""
        self._ignored: set[int] = set()
        self._resident_bytes = 0

    def wait(self, seconds: float, channel: int | None) -> None:
        was_over = self._group.status is not None
        self._machine.wait(seconds, lambda: (self.has_ended() and not was_over) or bool(self._output))

    def read(self) -> bytes:
        self._perform_due_steps()
        data, self._output = self._output, b""
        return data

    def has_ended(self) -> bool:
        self._perform_due_steps()
        return self._group.status is not None

    def signal_group(self, number: int) -> None:
        self._perform_due_steps()
        if number == signal.SIGCONT:
            return
        if number == signal.SIGKILL or number not in self._ignored:
            self._group.status = -number if self._group.status is None else self._group.status
            self._group.left = {pid: process for pid, process in self._group.left.items() if process.is_detached}

    def has_other_processes(self) -> bool:
        return any(not process.is_detached for process in self._group.left.values())

    def resident_bytes(self) -> int:
        self._perform_due_steps()
        return self._resident_bytes

    def kill_and_wait(self, *, everything: bool, seconds: float) -> list[str]:
        self.signal_group(signal.SIGKILL)
        if everything:
            self._group.left.clear()
        return [f"{pid} {process.name}" for pid, process in self._group.left.items()]

    def close(self) -> ProcessEnded | None:
        self._output = b""
        return None if self._group.status is None else ProcessEnded(exit_status=self._group.status)

    def _perform_due_steps(self) -> None:
        while self._group.status is None and self._due_ns <= self._machine.now_ns():
            match self._acts.pop(0) if self._acts else Exits(0):
                case Writes(data):
                    self._output += data
                case Takes(seconds):
                    self._due_ns += round(seconds * NS)
                case Ignores(number):
                    self._ignored.add(number)
                case Leaves() as process:
                    self._group.left[self._machine.new_pid()] = process
                case Holds(resident_bytes):
                    self._resident_bytes = resident_bytes
                case Exits(status):
                    self._group.status = status
