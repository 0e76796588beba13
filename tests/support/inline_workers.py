"""Analyses in this process: the whole application, with real workers that are called instead of started.

Everything is product code (freezing, planning, adoption, the loop, workers with the real tasks, merging, collection)
except processes, sockets, signals and limits. So a run of a few files takes a fraction of the time of processes.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import asdict

from codebatch.coordinator.processes.worker_backend import MessageReceived, WorkerEvent, WorkerExited, WorkerHandle
from codebatch.model.outcome import HolderId
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.project.stores import StoreLocator
from codebatch.operations.runs import resume as continuing
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.operations.runs.run import run_paths
from codebatch.operations.runs.run_result import RunResult
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.input_audit import InputAudit
from codebatch.protocol.launch import WorkerLaunch, WorkerSettings
from codebatch.protocol.messages import Hello, MessageFromWorker, MessageToWorker, Stop
from codebatch.scheduling.events import WorkerId
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.holders import HolderFile, new_holder_id
from codebatch.store.batches.store_directory import open_store
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.system.files.files import RealFiles
from codebatch.system.files.system_calls import SystemCalls
from codebatch.system.processes.progress_cell import WorkerStep
from codebatch_workers.runtime.channel import CoordinatorChannel
from codebatch_workers.runtime.execution import TaskRunner
from codebatch_workers.runtime.terms import terms_keeper
from codebatch_workers.runtime.worker import AnalysisWorker
from tests.support.simulated_channel import SimulatedCell

NULL = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


class _InboxEmpty(Exception):
    """The worker has read all messages."""


class _InlineChannel(CoordinatorChannel):
    """The worker's end of a channel: messages to the worker, and messages from it."""

    def __init__(self) -> None:
        self.inbox: deque[MessageToWorker] = deque()
        self.outbox: deque[MessageFromWorker] = deque()
        self.has_begun = False

    def fileno(self) -> int:
        return NULL

    def send(self, *messages: MessageFromWorker) -> None:
        for message in messages:
            if not (isinstance(message, Hello) and self.has_begun):  # A worker that continues says hello again.
                self.outbox.append(message)
            self.has_begun = True

    def receive(self) -> MessageToWorker:
        if not self.inbox:
            raise _InboxEmpty
        return self.inbox.popleft()

    def try_receive(self) -> MessageToWorker | None:
        return self.inbox.popleft() if self.inbox and not isinstance(self.inbox[0], Stop) else None


class _InlineWorker(AnalysisWorker):
    """The real worker. It shares its descriptors with the whole test, so it cannot detect leaks."""

    def leave(self) -> None:
        """Close everything that the end of the process would close."""
        for descriptor in self._reserved_descriptors:
            os.close(descriptor)
        self._committer.close()
        self._journal.close()
        self._holder.close()

    def _check_descriptors(self) -> None:
        pass


class _IgnoringWatch(InputAudit):
    """An audit that never notices inputs outside the cache key. A real audit hook could not be removed again."""

    def _install_hook(self) -> None:
        pass


class InlineCrew:
    """Implementation of WorkerBackend, with the constructor of ProcessWorkerBackend."""

    exit_status = 0

    def __init__(self, batch: BatchDir, settings: WorkerSettings, **_: object) -> None:
        self._batch = batch
        self._settings = settings
        self._workers: dict[WorkerId, tuple[_InlineWorker, _InlineChannel, SimulatedCell]] = {}
        self._chance = random.Random(batch.about.items)

    def begin(self) -> None:
        pass

    def end(self) -> None:
        for worker in list(self._workers):
            self._bury(worker)

    def start(self, worker: WorkerId) -> WorkerHandle:
        launch = WorkerLaunch(**asdict(self._settings), holder=new_holder_id(), channel=0, parent=0)
        scratch = self._batch.root / layout.SCRATCH / launch.holder
        self._batch.files.make_directory(scratch)
        store = open_store(self._batch.files, Path(launch.store))
        tasks = self._batch.plan().tasks
        catalogue = TaskCatalogue(launch.own_tasks, _IgnoringWatch(launch.store), self._batch.about.imports)
        keep = terms_keeper(self._batch.files, store.root, self._batch.plan()) if launch.keeps_terms else None
        objects = store.objects()
        runner = TaskRunner(catalogue, tasks, scratch, PackWriter(objects), store.root, keep, objects.read)
        channel, cell = _InlineChannel(), SimulatedCell(lambda: None)
        started = _InlineWorker(launch, channel, pid=os.getpid(), files=self._batch.files, cell=cell, runner=runner)
        self._workers[worker] = started, channel, cell
        return WorkerHandle(holder=launch.holder, pid=os.getpid())

    def send(self, worker: WorkerId, message: MessageToWorker) -> None:
        if worker in self._workers:
            self._workers[worker][1].inbox.append(message)

    def wait(self) -> list[WorkerEvent]:
        """Let one random worker that has messages handle all of them. Return its events."""
        ready = [id_ for id_, (_, channel, _) in self._workers.items() if channel.inbox or not channel.has_begun]
        id_ = self._chance.choice(ready)
        worker, channel, _ = self._workers[id_]
        has_ended = False
        with contextlib.suppress(_InboxEmpty):
            worker.run()
            has_ended = True
        events: list[WorkerEvent] = [MessageReceived(id_, message) for message in channel.outbox]
        channel.outbox.clear()
        return [*events, self._bury(id_)] if has_ended else events

    def step(self, worker: WorkerId) -> WorkerStep | None:
        return self._workers[worker][2].read() if worker in self._workers else None

    def is_holder_stuck(self, holder: HolderFile) -> bool:
        return False

    def is_holder_silent(self, holder: HolderFile, commits: int) -> bool:
        return False

    def kill_orphans(self, dead: set[HolderId]) -> None:
        pass

    def _bury(self, id_: WorkerId) -> WorkerExited:
        worker, _, cell = self._workers.pop(id_)
        worker.leave()
        return WorkerExited(worker=id_, returncode=0, how="", step=cell.read())


@contextlib.contextmanager
def inline(calls: SystemCalls | None = None) -> Iterator[None]:
    """Run all analyses of this process inline. `calls` are the system calls of the store, by default the real ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codebatch.coordinator.analysis.execution.ProcessWorkerBackend", InlineCrew)
        # A scratch directory in memory would last as long as this process.
        patch.setattr("codebatch_workers.runtime.task_environments.try_memory_scratch", lambda: None)
        if calls is not None:
            patch.setattr("codebatch.operations.project.stores.RealFiles", lambda: RealFiles(calls))
        yield


def resume(tree: Path, ran: RunResult) -> RunResult:
    """Resume a batch, as `codebatch resume` does, with the configuration of the tree."""
    execution = ExecutionSettings(configuration=load_configuration(tree), jobs=2)
    return continuing.resume(execution, ran.store, ran.batch, Listener())


def run(
    path: Path,
    store: Path,
    *,
    configured: Path | None = None,
    reuses: bool = True,
    task: str | None = None,
    pipeline: str | None = None,
    exclude: tuple[str, ...] = (),
) -> RunResult:
    """Run `codebatch run PATH` with two workers and the configuration of `configured`, by default of the path."""
    execution = ExecutionSettings(configuration=load_configuration(configured or path), jobs=2, reuses=reuses)
    return run_paths(
        (path,), StoreLocator(store), execution, task=task, pipeline=pipeline, exclude=exclude, listener=Listener()
    )
