"""Interfaces of the coordinator of a work batch: its worker backend and its watcher, with the backend's events."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

import msgspec

from codebatch.coordinator.processes.worker_backend import Heard, WorkerHandle
from codebatch.model.outcome import HolderId
from codebatch.protocol import messages
from codebatch.scheduling.events import WorkerId
from codebatch.scheduling.work.conductor import Conductor
from codebatch.scheduling.work.estimate import Eta
from codebatch.scheduling.work.events import CommandEvent
from codebatch.store.batches.holders import HolderFile


class TimerFired(msgspec.Struct, frozen=True):
    """The end of the wait before an attempt of a round."""

    item: int
    round: int


class HelperExited(msgspec.Struct, frozen=True):
    """The end of the helper program: its output, or None if it failed or exceeded its time limit."""

    output: bytes | None


class ForcedStopRequested(msgspec.Struct, frozen=True):
    """A request for an immediate end, by a second signal named `reason`. At the third signal, workers are killed."""

    reason: str
    is_killed: bool


class StoppedWorker(msgspec.Struct, frozen=True):
    """A worker that was stopped or traced by another process. It was continued, or killed if `is_killed`."""

    holder: HolderId
    pid: int
    is_traced: bool
    is_killed: bool


CommandHeard = Heard | TimerFired | HelperExited | ForcedStopRequested | StoppedWorker


class CommandBackend(Protocol):
    """Workers for the commands of one coordinator. Calls about a worker that has died do nothing."""

    def begin(self) -> None:
        """Start the backend. Called once, before all methods except `kill_left_of` and `take_on`.

        `end` follows in every case.
        """

    def end(self) -> None:
        """Close the channels. Workers with a running command finish the command."""

    def start(self, worker: WorkerId) -> WorkerHandle:
        """Start a worker. It sends Hello when it is ready for a command."""

    def send(self, worker: WorkerId, message: messages.ToWorker) -> None:
        """Send a message. If the worker is dead, nothing is raised; its end is reported by `wait`."""

    def wait(self) -> list[CommandHeard]:
        """Wait at most 0.1 s. Return the events since the last call, in order."""

    def wake(self, item: int, round_: int, seconds: float, until_ns: int = 0) -> None:
        """Schedule a TimerFired: after `seconds` of running time, or at the wall-clock time `until_ns` if set."""

    def help(self, arguments: Sequence[str], given: bytes, seconds: float) -> None:
        """Run a helper program with `given` on its standard input; kill it after `seconds`. Its end is a HelperExited.

        At most one helper may run at a time.
        """

    def take_on(self, holders: Collection[HolderFile]) -> None:
        """Adopt live workers of an earlier coordinator, and continue those that are stopped."""

    def kill_left_of(self, marks: Collection[str], dead: Collection[HolderId]) -> None:
        """Kill orphans of dead workers: their commands, and all processes with these attempt marks."""


class CommandWatcher(Protocol):
    """Receiver of progress of a work batch."""

    def conducting(self, conductor: Conductor) -> None:
        """Provide the conductor, whose state may be read at any time. Called once, at the start."""

    def handled(self, event: CommandEvent) -> None:
        """Report that an event was handled. Called after each event."""

    def turned(self, eta: Eta | None) -> None:
        """Report the end of a turn. Called at least ten times a second.

        `eta` is the estimated remaining time, or None if unknown.
        """

    def insisted(self, is_killed: bool) -> None:
        """Report a forced stop: running commands were terminated, or killed if `is_killed`."""

    def noted(self, text: str) -> None:
        """Report a note for the user."""

    def warned(self, text: str) -> None:
        """Report a warning. It is shown even if the user wants no notes."""
