"""Work batches of a few commands, and a real worker of such a batch with the coordinator's end of its channel."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from msgspec import UNSET, UnsetType

from codebatch.coordinator.processes.workers import WorkerProcess, start_worker
from codebatch.model.outcome import HolderId, TaskOutcome, WorkUnit
from codebatch.model.plan import Plan
from codebatch.model.work.command import Command
from codebatch.model.work.trees import TreeSettings
from codebatch.model.work.work_batch import WORK_TASK, Work
from codebatch.protocol.launch import WorkerSettings
from codebatch.protocol.messages import Assign, AttemptInput, Committed, Finished, Hello, MessageFromWorker, Returned
from codebatch.scheduling.events import WorkerId
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.journal import Ran, read_journal
from codebatch.store.batches.store_directory import StoreDir, create_store
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.work.requests import RequestStore
from codebatch.store.work.work_batches import make_work_batch
from codebatch.system.files.files import RealFiles
from tests.support.resources import is_readable

COORDINATOR = HolderId("c" * 32)
PATIENCE_SECONDS = 60.0

Message = TypeVar("Message", bound=MessageFromWorker)


@dataclass(frozen=True, slots=True)
class Place:
    """A work batch on disk; its commands start in `root`."""

    store: StoreDir
    batch: BatchDir
    plan: Plan
    root: Path

    def unit(self, item: int, round_: int = 1) -> WorkUnit:
        """Return the unit of one attempt. `item` numbers the commands in the order of their ids."""
        (shard,) = self.plan.shards
        return WorkUnit(shard=shard.id, start=item, end=item + 1, tasks=(WORK_TASK,), round=round_)

    @property
    def requests(self) -> RequestStore:
        """The requests of the batch."""
        return RequestStore(self.batch.files, self.batch.root)

    def outcomes(self) -> list[TaskOutcome]:
        """Return all committed outcomes."""
        commits = OutcomeRegisters(self.batch.files, self.batch.root).scan_new().commits
        return [outcome for commit in commits for outcome in commit.outcomes]

    def ran(self) -> list[Ran]:
        """Return the ends of attempts that the journals record."""
        lines = read_journal(self.batch.files, self.batch.root)
        return [line.event for line in lines if isinstance(line.event, Ran)]

    def log(self, item: int = 0, round_: int = 1, epoch: int = 1) -> bytes:
        """Return the log of an attempt."""
        name = layout.log_name(self.plan.shards[0].id, item, round_, epoch)
        return (self.batch.root / layout.LOGS / name).read_bytes()


def make_place(
    directory: Path, *commands: Command, trees: TreeSettings | UnsetType = UNSET, root: Path | None = None
) -> Place:
    """Create a store with a work batch of some commands. By default the root is the directory `root`."""
    store = create_store(RealFiles(), directory / "store")[0]
    root = root or directory / "root"
    root.mkdir(exist_ok=True)
    order = tuple(command.id for command in commands)
    work = Work(source="test", root=bytes(root), order=order, trees=trees)
    batch = make_work_batch(store, commands, work, at_ns=time.time_ns())
    return Place(store, batch, batch.plan(), root)


class Coordinator:
    """The coordinator of one real worker process, controlled by the test."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.worker: WorkerProcess = start_worker(
            WorkerId(1),
            place.batch,
            WorkerSettings(store=str(place.store.root), batch=place.batch.id, coordinator=COORDINATOR, role="commands"),
        )
        self._received: list[MessageFromWorker] = []
        self._is_over = False
        self.hear(Hello)

    def assign(
        self,
        item: int = 0,
        *,
        round_: int = 1,
        epoch: int = 1,
        requests: int = 0,
        brief: AttemptInput = AttemptInput(),  # noqa: B008 # It is immutable.
    ) -> None:
        """Assign an attempt of a command to the worker."""
        self.worker.send(Assign(unit=self.place.unit(item, round_), epoch=epoch, requests=requests, brief=brief))

    def hear(self, kind: type[Message]) -> Message:
        """Return the next message of the worker, and check its type. Skip Returned messages."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._received:
            assert time.monotonic() < deadline, f"no {kind.__name__} arrived: {self.worker.stderr_text}"
            if is_readable(self.worker.channel, 0.1):
                received = self.worker.receive()
                assert received is not None, f"the worker has ended: {self._why()}"
                # The worker sends Returned when an attempt takes long.
                self._received += [message for message in received if not isinstance(message, Returned)]
        message = self._received.pop(0)
        assert isinstance(message, kind), message
        return message

    def result(self) -> TaskOutcome:
        """Wait for the end of the current attempt. Return its committed outcome."""
        (outcome,) = self.hear(Committed).commit.outcomes
        self.hear(Finished)
        return outcome

    def do(self, item: int = 0, *, round_: int = 1, epoch: int = 1) -> TaskOutcome:
        """Assign an attempt of a command, wait for its end and return its outcome."""
        self.assign(item, round_=round_, epoch=epoch)
        return self.result()

    def vanish(self) -> None:
        """Close the channel, as the death of the coordinator by kill -9 does."""
        self.worker.channel.close()

    def wait_end(self) -> int:
        """Wait until the worker has ended. Return its exit status."""
        wait_until(lambda: self.worker.has_ended)
        self._is_over = True
        return self.worker.reap_and_kill_group().returncode

    def close(self) -> None:
        """Kill the worker, unless it has ended."""
        if not self._is_over:
            self.worker.kill("abandoned")
            self.worker.reap_and_kill_group()

    def _why(self) -> str:
        with contextlib.suppress(BlockingIOError):
            while self.worker.read_stderr():
                pass
        return self.worker.stderr_text


@contextlib.contextmanager
def coordinating(place: Place) -> Iterator[Coordinator]:
    """Start a worker of a batch, and kill it on exit."""
    coordinator = Coordinator(place)
    try:
        yield coordinator
    finally:
        coordinator.close()


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        time.sleep(0.005)
