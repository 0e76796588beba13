"""What who conducts a work batch sees of others: its crew, of processes or simulated (crew.py), and who looks on."""

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
    """The time is over for which was to be waited before the attempt of a round."""

    item: int
    round: int


class HelperExited(msgspec.Struct, frozen=True):
    """The program that was to help is no more: what it printed, None where it did not succeed, or not in time."""

    output: bytes | None


class ForcedStopRequested(msgspec.Struct, frozen=True):
    """A second signal, of which `reason` is the name, wants an end now; a third one: workers are killed."""

    reason: str
    is_killed: bool


class StoppedWorker(msgspec.Struct, frozen=True):
    """A worker was found stopped, or traced by another process. It was continued, or `is_killed`."""

    holder: HolderId
    pid: int
    is_traced: bool
    is_killed: bool


CommandHeard = Heard | TimerFired | HelperExited | ForcedStopRequested | StoppedWorker


class CommandBackend(Protocol):
    """Workers for commands of one coordinator. What concerns a worker that has died is passed over."""

    def begin(self) -> None:
        """Called once, before all but `kill_left_of` and `take_on`; `end` follows, whatever happens between."""

    def end(self) -> None:
        """Leave workers that are at something to end it by themselves."""

    def start(self, worker: WorkerId) -> WorkerHandle:
        """Start a worker; it says Hello when it can be given a command."""

    def send(self, worker: WorkerId, message: messages.ToWorker) -> None:
        """Send a message. That nobody is there to receive it is heard, not raised."""

    def wait(self) -> list[CommandHeard]:
        """What was heard since the last call, in order; waits for something, for a tenth of a second at most."""

    def wake(self, item: int, round_: int, seconds: float, until_ns: int = 0) -> None:
        """Say Rang after so many seconds, or once the wall clock has passed `until_ns`, if that is set."""

    def help(self, arguments: Sequence[str], given: bytes, seconds: float) -> None:
        """Run a program with something on its standard input, and say Helped when it has ended, or been ended after so
        many seconds. One at a time.
        """

    def take_on(self, holders: Collection[HolderFile]) -> None:
        """Let live workers of an earlier coordinator go on, be it that they were stopped."""

    def kill_left_of(self, marks: Collection[str], dead: Collection[HolderId]) -> None:
        """Kill what attempts with these marks left running, of workers that are dead."""


class CommandWatcher(Protocol):
    """Who is told of a batch of commands while it runs."""

    def conducting(self, conductor: Conductor) -> None:
        """Called once: whoever wants to know where things stand asks the conductor."""

    def handled(self, event: CommandEvent) -> None:
        """Called after each event."""

    def turned(self, eta: Eta | None) -> None:
        """Called after each turn: whenever something was heard, and ten times a second where nothing is.

        `eta` is how long it takes yet, None where nobody knows.
        """

    def insisted(self, is_killed: bool) -> None:
        """Called where somebody wants an end now: what runs was told to end, or `is_killed`."""

    def noted(self, text: str) -> None:
        """Something worth knowing."""

    def warned(self, text: str) -> None:
        """Something that must be known, also by callers that want no notes."""
