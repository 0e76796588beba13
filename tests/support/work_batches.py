"""Work batches of a few commands, and a worker of one with a coordinator's end of its channel."""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from codebatch.coordinator.processes.workers import WorkerProcess, start_worker
from codebatch.model.outcome import HolderId, TaskOutcome, WorkUnit
from codebatch.model.plan import Plan
from codebatch.model.work.command import Command
from codebatch.model.work.work_batch import WORK_TASK, Work
from codebatch.protocol.launch import WorkerSettings
from codebatch.protocol.messages import Assign, Committed, Finished, Hello, MessageFromWorker, Returned
from codebatch.scheduling.events import WorkerId
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.journal import Ran, read_journal
from codebatch.store.batches.store_directory import StoreDir, create_store
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.work.requests import RequestStore
from codebatch.store.work.work_batches import make_work_batch
from codebatch.system.files.files import RealFiles

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
        """An attempt of a command, by its number in the order of ids."""
        (shard,) = self.plan.shards
        return WorkUnit(shard=shard.id, start=item, end=item + 1, tasks=(WORK_TASK,), round=round_)

    @property
    def requests(self) -> RequestStore:
        """What people asked."""
        return RequestStore(self.batch.files, self.batch.root)

    def outcomes(self) -> list[TaskOutcome]:
        """What is committed."""
        commits = OutcomeRegisters(self.batch.files, self.batch.root).scan_new().commits
        return [outcome for commit in commits for outcome in commit.outcomes]

    def ran(self) -> list[Ran]:
        """What journals say of attempts."""
        lines = read_journal(self.batch.files, self.batch.root)
        return [line.event for line in lines if isinstance(line.event, Ran)]

    def log(self, item: int = 0, round_: int = 1, epoch: int = 1) -> bytes:
        """The log of an attempt."""
        name = layout.log_name(self.plan.shards[0].id, item, round_, epoch)
        return (self.batch.root / layout.LOGS / name).read_bytes()


def make_place(directory: Path, *commands: Command) -> Place:
    """A store with a batch of some commands."""
    store = create_store(RealFiles(), directory / "store")[0]
    root = directory / "root"
    root.mkdir()
    work = Work(source="test", root=bytes(root), order=tuple(command.id for command in commands))
    batch = make_work_batch(store, commands, work, at_ns=time.time_ns())
    return Place(store, batch, batch.plan(), root)


class Coordinator:
    """Has started a worker process, and says what the test wants."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.worker: WorkerProcess = start_worker(
            WorkerId(1),
            place.batch,
            WorkerSettings(store=str(place.store.root), batch=place.batch.id, coordinator=COORDINATOR, role="commands"),
        )
        self._heard: list[MessageFromWorker] = []
        self._is_over = False
        self.hear(Hello)

    def assign(self, item: int = 0, *, round_: int = 1, epoch: int = 1, requests: int = 0) -> None:
        """Have it attempt a command."""
        self.worker.send(Assign(unit=self.place.unit(item, round_), epoch=epoch, requests=requests))

    def hear(self, kind: type[Message]) -> Message:
        """The next message, which is of a kind."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._heard:
            assert time.monotonic() < deadline, f"no {kind.__name__} came: {self.worker.stderr_text}"
            if select.select([self.worker.channel], [], [], 0.1)[0]:
                received = self.worker.receive()
                assert received is not None, f"it has ended: {self._why()}"
                self._heard += [one for one in received if not isinstance(one, Returned)]  # It took its time.
        message = self._heard.pop(0)
        assert isinstance(message, kind), message
        return message

    def result(self) -> TaskOutcome:
        """How the attempt at hand ended, which is committed."""
        (outcome,) = self.hear(Committed).commit.outcomes
        self.hear(Finished)
        return outcome

    def do(self, item: int = 0, *, round_: int = 1, epoch: int = 1) -> TaskOutcome:
        """Have it attempt a command, and wait for its end."""
        self.assign(item, round_=round_, epoch=epoch)
        return self.result()

    def vanish(self) -> None:
        """Be gone, as after kill -9."""
        self.worker.channel.close()

    def wait_end(self) -> int:
        """Wait until the worker has ended; its exit status."""
        wait_until(lambda: self.worker.has_ended)
        self._is_over = True
        return self.worker.reap_and_kill_group().returncode

    def close(self) -> None:
        """End the worker."""
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
    """A worker of a batch, for the time being."""
    coordinator = Coordinator(place)
    try:
        yield coordinator
    finally:
        coordinator.close()


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for something that comes."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.005)
