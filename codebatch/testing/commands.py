"""Commands that are no processes: what they do is written down, and a clock of the test's passes for them.

`tests/commands/test_contract.py` holds them and real ones to the same promises.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from codebatch.system.processes.command_processes import NotStarted, ProcessEnded, ProcessStart

NS = 1_000_000_000


class Writes(msgspec.Struct, frozen=True):
    """It writes to its output."""

    data: bytes


class Takes(msgspec.Struct, frozen=True):
    """It is at work, or waits, for a time."""

    seconds: float


class Ignores(msgspec.Struct, frozen=True):
    """From now on it does not heed a signal."""

    number: int


class Leaves(msgspec.Struct, frozen=True):
    """It starts another process, which runs on by itself, be it in a session of its own."""

    name: str
    is_detached: bool = False


class Holds(msgspec.Struct, frozen=True):
    """It has so much memory resident from now on."""

    resident_bytes: int


class Exits(msgspec.Struct, frozen=True):
    """It ends; by a signal where the status is negative."""

    status: int


Act = Writes | Takes | Ignores | Leaves | Holds | Exits
"""What a command does. At the end of its acts it exits with status 0."""


@dataclass(slots=True)
class _Group:
    """What is alive of one attempt: the command itself until it ends, and what it left, by pid."""

    mark: str
    status: int | None = None
    left: dict[int, Leaves] = field(default_factory=dict)


class Machine:
    """Where commands run, whoever started them: they outlive that one."""

    def __init__(
        self,
        programs: Mapping[tuple[str, ...], Sequence[Act]],
        now_ns: Callable[[], int],
        wait: Callable[[float, Callable[[], bool]], None],
    ) -> None:
        """`programs` are what each argument vector does. `now_ns` is the clock; `wait` lets seconds pass, fewer where
        the condition holds before.
        """
        self.programs = programs
        self.now_ns = now_ns
        self.wait = wait
        self._groups: dict[str, _Group] = {}
        self._pids = 1

    @property
    def alive(self) -> list[str]:
        """The marks of attempts of which something runs."""
        return [mark for mark, group in self._groups.items() if group.status is None or group.left]

    def kill_marked(self, marks: Collection[str]) -> None:
        """SIGKILL for all that attempts started."""
        for mark in marks:
            group = self._groups.get(mark)
            if group is not None:
                group.left.clear()
                group.status = -signal.SIGKILL if group.status is None else group.status

    def new_pid(self) -> int:
        """The next process id."""
        self._pids += 1
        return self._pids

    def add(self, mark: str) -> _Group:
        """An attempt begins."""
        assert mark not in self._groups, f"{mark} runs twice"
        self._groups[mark] = _Group(mark)
        return self._groups[mark]


class TwinCommands:
    """Implements Commands, on a machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def start(self, start: ProcessStart) -> TwinRunning:
        acts = self._machine.programs.get(tuple(start.arguments))
        if acts is None:
            raise NotStarted(f"{start.arguments[0]}: No such file or directory")
        return TwinRunning(self._machine, self._machine.add(start.mark), acts)


class TwinRunning:
    """Implements Running: each look at it lets it do what it has come to."""

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
        self._machine.wait(seconds, lambda: (self.poll() and not was_over) or bool(self._output))

    def read(self) -> bytes:
        self._go_on()
        data, self._output = self._output, b""
        return data

    def poll(self) -> bool:
        self._go_on()
        return self._group.status is not None

    def signal(self, number: int) -> None:
        self._go_on()
        if number == signal.SIGCONT:
            return
        if number == signal.SIGKILL or number not in self._ignored:
            self._group.status = -number if self._group.status is None else self._group.status
            self._group.left = {pid: one for pid, one in self._group.left.items() if one.is_detached}

    def has_company(self) -> bool:
        return any(not one.is_detached for one in self._group.left.values())

    def resident_bytes(self) -> int:
        self._go_on()
        return self._resident_bytes

    def end(self, *, everything: bool, seconds: float) -> list[str]:
        self.signal(signal.SIGKILL)
        if everything:
            self._group.left.clear()
        return [f"{pid} {one.name}" for pid, one in self._group.left.items()]

    def close(self) -> ProcessEnded | None:
        self._output = b""
        return None if self._group.status is None else ProcessEnded(exit_status=self._group.status)

    def _go_on(self) -> None:
        while self._group.status is None and self._due_ns <= self._machine.now_ns():
            match self._acts.pop(0) if self._acts else Exits(0):
                case Writes(data):
                    self._output += data
                case Takes(seconds):
                    self._due_ns += round(seconds * NS)
                case Ignores(number):
                    self._ignored.add(number)
                case Leaves() as one:
                    self._group.left[self._machine.new_pid()] = one
                case Holds(resident_bytes):
                    self._resident_bytes = resident_bytes
                case Exits(status):
                    self._group.status = status
