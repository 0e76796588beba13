"""The event loop of a work batch: the order in which it reads requests and messages."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from codebatch.coordinator.processes.worker_backend import DrainRequest, MessageReceived, WorkerExited, WorkerHandle
from codebatch.coordinator.work.interfaces import CommandBackendEvent
from codebatch.coordinator.work.loop import WorkCoordinator
from codebatch.model.outcome import HolderId
from codebatch.model.work.command import Command, CommandId
from codebatch.model.work.request import Pause
from codebatch.model.work.work_batch import Work
from codebatch.protocol import messages
from codebatch.scheduling.events import WorkerId
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.holders import HolderFile, new_holder_id
from codebatch.store.batches.store_directory import create_store
from codebatch.store.work.requests import RequestStore
from codebatch.store.work.work_batches import make_work_batch
from codebatch.system.files.files import RealFiles
from codebatch.system.host import this_host

A = CommandId("a")
WORKER = WorkerId(1)


class _PausingBackend:
    """A command backend with one worker. A request to pause is written just before the message of the worker."""

    def __init__(self, batch: BatchDir) -> None:
        self._requests = RequestStore(batch.files, batch.root)
        self._turns = 0
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
        self._turns += 1
        if self._turns == 1:
            self._requests.append(Pause(), by="test", at_ns=1)
            return [MessageReceived(WORKER, messages.Hello(version=1, holder=HolderId("1" * 32)))]
        return [DrainRequest("SIGTERM"), WorkerExited(worker=WORKER, returncode=0, how="")]

    def set_timer(self, item: int, round_: int, seconds: float, until_ns: int = 0) -> None:
        pass

    def start_helper(self, arguments: Sequence[str], input_bytes: bytes, seconds: float) -> None:
        pass

    def adopt_workers(self, holders: Collection[HolderFile]) -> None:
        pass

    def kill_orphans(self, marks: Collection[str], dead: Collection[HolderId]) -> None:
        pass


def test_message_is_handled_after_the_requests_that_were_written_before_it(tmp_path: Path) -> None:
    """A worker obeys a request before the coordinator reads it. Otherwise a paused batch would start a command."""
    store, _ = create_store(RealFiles(), tmp_path / "store")
    work = Work(source="test", root=bytes(tmp_path), order=(A,), strategy="parallel", max_parallel=1)
    batch = make_work_batch(store, [Command(id=A, run="true")], work, at_ns=1)
    backend = _PausingBackend(batch)
    about = HolderFile(holder=new_holder_id(), role="coordinator", pid=1, host=this_host(), since_ns=1)
    coordinator = WorkCoordinator(
        batch,
        batch.plan(),
        work,
        [A],
        backend,
        about=about,
        watcher=None,
        wall_ns=lambda: 1,
        read_text=lambda _: "true",
        is_isolated=lambda _: False,
    )
    coordinator.run()
    coordinator.close()
    assert coordinator.is_drained
    assert [type(message) for message in backend.sent] == [messages.Stop]
