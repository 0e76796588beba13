"""The event loop of a work batch: the order in which it reads requests and messages."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import pytest

from codebatch.coordinator.processes.worker_backend import DrainRequest, MessageReceived, WorkerExited, WorkerHandle
from codebatch.coordinator.work.interfaces import CommandBackendEvent
from codebatch.coordinator.work.loop import WorkCoordinator
from codebatch.errors import StoreUnwritable
from codebatch.model.outcome import HolderId
from codebatch.model.work.command import Command, CommandId
from codebatch.model.work.request import Pause
from codebatch.model.work.work_batch import Work
from codebatch.protocol import messages
from codebatch.scheduling.events import WorkerId
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.holders import HolderFile, new_holder_id
from codebatch.store.batches.journal import Lost, read_journal
from codebatch.store.batches.store_directory import create_store
from codebatch.store.work.requests import RequestStore
from codebatch.store.work.work_batches import make_work_batch, read_work
from codebatch.system.files.files import RealFiles
from codebatch.system.host import this_host

A = CommandId("a")
WORKER = WorkerId(1)


class _ScriptedBackend:
    """A command backend whose events are scripted: those of one turn at a time."""

    def __init__(self, turns: Iterator[list[CommandBackendEvent]]) -> None:
        self._turns = turns
        self.sent: list[messages.MessageToWorker] = []

    def begin(self) -> None:
        pass

    def end(self) -> None:
        pass

    def start(self, worker: WorkerId) -> WorkerHandle:
        return WorkerHandle(holder=HolderId(f"{worker:032x}"), pid=1)

    def send(self, worker: WorkerId, message: messages.MessageToWorker) -> None:
        self.sent.append(message)

    def wait(self) -> list[CommandBackendEvent]:
        return next(self._turns)

    def set_timer(self, item: int, round_: int, seconds: float, until_ns: int = 0) -> None:
        pass

    def start_helper(self, arguments: Sequence[str], input_bytes: bytes, seconds: float) -> None:
        pass

    def adopt_workers(self, holders: Collection[HolderFile]) -> None:
        pass

    def kill_orphans(self, marks: Collection[str], dead: Collection[HolderId]) -> None:
        pass


HELLO = MessageReceived(WORKER, messages.Hello(version=1, holder=HolderId("1" * 32)))
DRAINED: list[CommandBackendEvent] = [DrainRequest("SIGTERM"), WorkerExited(worker=WORKER, returncode=0, how="")]


def make_batch(directory: Path) -> BatchDir:
    """A batch with the task `a`."""
    store, _ = create_store(RealFiles(), directory / "store")
    work = Work(source="test", root=bytes(directory), order=(A,), strategy="parallel", max_parallel=1)
    return make_work_batch(store, [Command(id=A, run="true")], work, at_ns=1)


@contextlib.contextmanager
def coordinating(batch: BatchDir, backend: _ScriptedBackend) -> Iterator[WorkCoordinator]:
    about = HolderFile(holder=new_holder_id(), role="coordinator", pid=1, host=this_host(), since_ns=1)
    coordinator = WorkCoordinator(
        batch,
        batch.plan(),
        read_work(batch),
        [A],
        backend,
        about=about,
        watcher=None,
        wall_ns=lambda: 1,
        read_text=lambda _: "true",
        is_isolated=lambda _: False,
    )
    yield coordinator
    coordinator.close()
    coordinator.publisher.close()


def test_message_is_handled_after_the_requests_that_were_written_before_it(tmp_path: Path) -> None:
    """A worker obeys a request before the coordinator reads it. Otherwise a paused batch would start a command."""
    batch = make_batch(tmp_path)

    def turns() -> Iterator[list[CommandBackendEvent]]:
        RequestStore(batch.files, batch.root).append(Pause(), by="test", at_ns=1)
        yield [HELLO]
        yield DRAINED

    backend = _ScriptedBackend(turns())
    with coordinating(batch, backend) as coordinator:
        coordinator.run()
        assert coordinator.is_drained
    assert [type(message) for message in backend.sent] == [messages.Stop]


def test_first_error_of_several_ends_the_run(tmp_path: Path) -> None:
    gave_up = [
        MessageReceived(WORKER, messages.GaveUp(code=StoreUnwritable.code, message=text, hint=None))
        for text in ("first", "second")
    ]
    backend = _ScriptedBackend(iter([[HELLO], [*gave_up], DRAINED]))
    with coordinating(make_batch(tmp_path), backend) as coordinator, pytest.raises(StoreUnwritable, match="first"):
        coordinator.run()


@pytest.mark.parametrize(("first", "lost"), [([], []), ([HELLO], ["ended"])])
def test_worker_that_exits_during_a_command_is_in_the_journal(
    tmp_path: Path, first: list[CommandBackendEvent], lost: list[str]
) -> None:
    exited: list[CommandBackendEvent] = [
        DrainRequest("SIGTERM"),
        WorkerExited(worker=WORKER, returncode=0, how="ended"),
    ]
    batch = make_batch(tmp_path)
    with coordinating(batch, _ScriptedBackend(iter([first, exited]))) as coordinator:
        coordinator.run()
    events = read_journal(batch.files, batch.root)
    assert [line.event.reason for line in events if isinstance(line.event, Lost)] == lost
