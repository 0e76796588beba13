"""Interfaces of the coordinator of a work batch: its worker backend, the events of the backend, and its watcher."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import msgspec

from codebatch.coordinator.processes.worker_backend import WorkerEvent, WorkerHandle
from codebatch.model.outcome import HolderId
from codebatch.model.work.event import BatchEvent
from codebatch.protocol import messages
from codebatch.scheduling.events import WorkerId
from codebatch.scheduling.work.conductor import Conductor
from codebatch.scheduling.work.estimate import Eta
from codebatch.scheduling.work.event_projection import ProjectedEvent
from codebatch.store.batches.holders import HolderFile


class TimerFired(msgspec.Struct, frozen=True):
    """The end of the wait before an attempt. It may start now."""

    item: int
    round: int


class HelperExited(msgspec.Struct, frozen=True):
    """The end of a helper program, which answers questions.

    `output` is its output. It is None if the program failed, printed too much, or exceeded its time limit. Then
    `problem` says which of them.
    """

    output: bytes | None
    problem: str = ""


class ForcedStopRequested(msgspec.Struct, frozen=True):
    """A request to stop immediately, by a second or third signal. `reason` is the name of the signal.

    At the third signal, workers are killed, and `is_killed` is set.
    """

    reason: str
    is_killed: bool


class StoppedWorker(msgspec.Struct, frozen=True):
    """A worker that another process had stopped or traced.

    The coordinator has continued the worker or, if `is_killed` is set, killed it.
    """

    holder: HolderId
    pid: int
    is_traced: bool
    is_killed: bool


CommandBackendEvent = WorkerEvent | TimerFired | HelperExited | ForcedStopRequested | StoppedWorker


class CommandBackend(Protocol):
    """The interface to the workers that run commands for one coordinator.

    A call for a worker that has died does nothing.
    """

    def begin(self) -> None:
        """Start the backend. It is called once, before all other methods except `kill_orphans` and `adopt`.

        The caller must call `end` in every case.
        """

    def end(self) -> None:
        """Close the channels. A worker with a running command finishes this command."""

    def start(self, worker: WorkerId) -> WorkerHandle:
        """Start a worker. It sends Hello when it is ready for a command."""

    def send(self, worker: WorkerId, message: messages.MessageToWorker) -> None:
        """Send a message. If the worker is dead, nothing is raised; its end is reported by `wait`."""

    def wait(self) -> list[CommandBackendEvent]:
        """Wait at most 0.1 s. Return the events since the last call, in order."""

    def set_timer(self, item: int, round_: int, seconds: float, until_ns: int = 0) -> None:
        """Schedule the event TimerFired for an attempt.

        It is reported after `seconds` of running time or, if `until_ns` is set, at this wall-clock time.
        """

    def start_helper(self, arguments: Sequence[str], input_bytes: bytes, seconds: float) -> None:
        """Run a helper program with `input_bytes` on its standard input. After `seconds`, it is killed.

        Its end is reported as HelperExited. At most one helper program may run at a time.
        """

    def adopt_workers(self, holders: Collection[HolderFile]) -> None:
        """Adopt live workers of an earlier coordinator. Stopped workers are continued."""

    def kill_orphans(self, marks: Collection[str], dead: Collection[HolderId]) -> None:
        """Kill orphans of dead workers: their commands, and all processes with one of the attempt marks in `marks`.

        A mark is an environment variable that identifies an attempt. Child processes inherit it.
        """


class CommandWatcher(Protocol):
    """Receiver of the progress of a work batch."""

    def on_start(self, conductor: Conductor) -> None:
        """Receive the conductor, which has the states of all commands. This is called once, at the start.

        The watcher may read the conductor at any time.
        """

    def on_event(self, event: BatchEvent, projected: ProjectedEvent) -> None:
        """Report an event of a command or a request. It is called after `on_start`, for later events."""

    def on_drain(self) -> None:
        """Report that no more commands start, and that the run ends when the running commands have ended."""

    def on_turn_end(self, eta: Eta | None, counts: Mapping[str, int]) -> None:
        """Report the end of a turn. This is called at least ten times a second.

        `eta` is the estimated remaining time, or None if it is unknown. `counts` is the number of commands in each
        state.
        """

    def on_end(self) -> None:
        """Report that the run has ended, and that its last notifications are delivered now."""

    def on_forced_stop(self, is_killed: bool) -> None:
        """Report a forced stop. Running commands were terminated or, if `is_killed` is set, killed."""

    def on_note(self, text: str) -> None:
        """Report a note for the user."""

    def on_warning(self, text: str) -> None:
        """Report a warning. Unlike a note, it is shown even if the user wants no notes."""
