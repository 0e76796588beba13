"""The running commands of a simulated machine, as their supervisors see them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from codebatch.system.files.files import RealFiles
from codebatch.system.processes.command_processes import ProcessEnded, ProcessStart
from tests.support.schedule import Killed, Process

if TYPE_CHECKING:
    from tests.proof.commands.world import CommandWorld


@dataclass(slots=True)
class Alive:
    """A running command. `left` is the number of waits of its supervisor until it ends."""

    task: str
    round: int
    left: int
    status: int
    question: Path
    asks_live: bool = False
    leaves_question: bool = False
    output: bytes = b""
    has_been_signalled: bool = False


class SimulatedCommands:
    """Implementation of Commands."""

    def __init__(self, world: CommandWorld, process: Process) -> None:
        self._world = world
        self._process = process

    def start(self, start: ProcessStart) -> _SimulatedRunning:
        if self._process.is_doomed:
            raise Killed
        return _SimulatedRunning(self._world, self._process, start.mark, self._world.begin_command(start))


class _SimulatedRunning:
    """Implementation of Running."""

    def __init__(self, world: CommandWorld, process: Process, mark: str, alive: Alive) -> None:
        self._world = world
        self._process = process
        self._mark = mark
        self._alive = alive
        self.pid = self.start_ticks = 1

    def wait(self, seconds: float, channel: int | None) -> None:
        self._process.wait(lambda: False, is_patient=False)
        if not self._is_asking():
            self._alive.left -= 1

    def _is_asking(self) -> bool:
        """Return whether the command waits for an answer. It asks at most once, and continues after the answer."""
        if not self._alive.asks_live or self._alive.left > 2:
            return False
        files = RealFiles(self._world.disk.calls())
        ask = self._alive.question.parent / "ask-1.json"
        if not files.size(ask):
            self._world.happened["asked while it runs"] += 1
            files.write_volatile(ask, json.dumps({"text": self._mark}).encode())
        self._world.people(self._mark)
        answer = ask.with_suffix(".answer")
        if files.size(answer) is None:
            return True
        assert files.read(answer).startswith(b"so")
        self._alive.asks_live = False
        self._world.happened["answer to who runs"] += 1
        return False

    def read(self) -> bytes:
        data, self._alive.output = self._alive.output, b""
        return data

    def has_ended(self) -> bool:
        return self._alive.left < 0 or self._alive.has_been_signalled

    def signal_group(self, number: int) -> None:
        self._alive.has_been_signalled = True

    def has_other_processes(self) -> bool:
        return False

    def resident_bytes(self) -> int:
        return 0

    def kill_and_wait(self, *, everything: bool, seconds: float) -> list[str]:
        self._world.alive.pop(self._mark, None)
        return []

    def close(self) -> ProcessEnded:
        self._world.alive.pop(self._mark, None)
        if self._alive.leaves_question and not self._alive.has_been_signalled:
            RealFiles(self._world.disk.calls()).write_volatile(self._alive.question, b"what now?")
            self._world.happened["question"] += 1
        return ProcessEnded(exit_status=-15 if self._alive.has_been_signalled else self._alive.status)
