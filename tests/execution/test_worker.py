"""Tests of a worker's side of the channel, over a real socket and store: messages that it obeys, and how it ends."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from codebatch.errors import InvalidConfiguration, StoreUnwritable
from codebatch.model.digest import Digest
from codebatch.model.entry import Entry
from codebatch.model.outcome import HolderId, TaskOutcome, WorkUnit
from codebatch.model.shard import ProjectWork, Shard
from codebatch.protocol.launch import WorkerLaunch
from codebatch.protocol.messages import (
    Assign,
    Committed,
    Drain,
    Finished,
    GaveUp,
    Hello,
    MessageBuffer,
    MessageFromWorker,
    MessageToWorker,
    ReusedRange,
    Shrink,
    Stop,
    decode_from_worker,
    encode_message,
)
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir, create_store
from codebatch.store.results.outcomes import EncodedOutcome, join_parts
from codebatch.store.snapshots.snapshots import Snapshot
from codebatch.system.clock import running_ns
from codebatch.system.files.files import RealFiles, StoreFiles
from codebatch.system.files.system_calls import RealCalls
from codebatch_workers.runtime.channel import CoordinatorChannel, CoordinatorLost
from codebatch_workers.runtime.previous_batch import PreviousBatch
from codebatch_workers.runtime.project import BatchProject
from codebatch_workers.runtime.results import TaskResult, UnitResults
from codebatch_workers.runtime.shard_parts import ShardAdopter, adopt_no_shard
from codebatch_workers.runtime.worker import DESCRIPTORS_LEAKED_MAX, AnalysisWorker
from codebatch_workers.syntax.source import SourceFile
from tests.support.batches import FILE_TASKS, CheapRunner, make_batch
from tests.support.calls import Operation, WatchedCalls

ITEMS = 20
MESSAGES_READ_AGAIN_NS = 2_000_000


class Runner(CheapRunner):
    """A runner that calls a function at the first item of a unit, and another before the unit is encoded."""

    def __init__(self, batch: BatchDir, at_first: Callable[[], None], before_commit: Callable[[], None]) -> None:
        super().__init__(batch.plan().tasks, lambda: None, lambda: False)
        self._at_first = at_first
        self._before_commit = before_commit
        self._items = 0

    def run_item(
        self, file: SourceFile, tasks: Sequence[str], begin: Callable[[str], None] | None = None
    ) -> dict[str, TaskResult]:
        self._items += 1
        if self._items == 1:
            self._at_first()
            # A worker reads messages again only after a while.
            began = running_ns()
            while running_ns() - began < MESSAGES_READ_AGAIN_NS:
                pass
        return super().run_item(file, tasks, begin)

    def encode_unit(self, unit: WorkUnit, done: UnitResults) -> Iterator[EncodedOutcome]:
        self._before_commit()
        return super().encode_unit(unit, done)


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The coordinator's end of the channel: it sends messages and reads those of the worker."""

    connection: socket.socket

    def send(self, *messages: MessageToWorker) -> None:
        for message in messages:
            self.connection.sendall(encode_message(message))

    def read_messages(self) -> list[MessageFromWorker]:
        self.connection.setblocking(False)
        buffer, messages = MessageBuffer(), []
        with contextlib.suppress(BlockingIOError):
            while data := self.connection.recv(1 << 16):
                messages += [decode_from_worker(body) for body in buffer.feed(data)]
        return messages


@pytest.fixture
def pair() -> Iterator[tuple[Coordinator, CoordinatorChannel]]:
    coordinators, workers = socket.socketpair()
    with coordinators, workers:
        yield Coordinator(coordinators), CoordinatorChannel(workers)


@pytest.fixture
def store(tmp_path: Path) -> StoreDir:
    return create_store(RealFiles(), tmp_path / "store")[0]


def make_worker(
    store: StoreDir, batch: BatchDir, channel: CoordinatorChannel, runner: CheapRunner, files: StoreFiles | None = None
) -> AnalysisWorker:
    launch = WorkerLaunch(
        store=str(store.root), batch=batch.id, holder=HolderId("1" * 32), coordinator=HolderId("2" * 32), channel=0,
        parent=0,
    )  # fmt: skip
    return AnalysisWorker(launch, channel, pid=os.getpid(), files=files, runner=runner)


def run_unit(
    store: StoreDir,
    pair: tuple[Coordinator, CoordinatorChannel],
    at_first: Callable[[Coordinator], None] = lambda _: None,
    before_commit: Callable[[], None] = lambda: None,
) -> tuple[WorkUnit, list[MessageFromWorker]]:
    """Run one unit of all items. Return it, and the worker's messages.

    The worker is told to stop just before it commits.
    """
    coordinator, channel = pair
    batch = make_batch(store, [b"a/%03d" % number for number in range(ITEMS)], shard_items=ITEMS)
    unit = WorkUnit(shard=batch.plan().shards[0].id, start=0, end=ITEMS, tasks=FILE_TASKS)

    def stop() -> None:
        before_commit()
        coordinator.send(Stop())

    worker = make_worker(store, batch, channel, Runner(batch, lambda: at_first(coordinator), stop))
    coordinator.send(Assign(unit=unit, epoch=1))
    worker.run()
    return unit, coordinator.read_messages()


def end_of_committed_items(messages: Sequence[MessageFromWorker]) -> int:
    """Return the end of the committed items."""
    hello, committed, finished = messages
    assert (type(hello), type(committed), type(finished)) == (Hello, Committed, Finished)
    assert isinstance(committed, Committed)
    (end,) = {outcome.end for outcome in committed.commit.outcomes}
    return end


def test_unit_is_executed_without_decoding_all_entries(
    store: StoreDir, pair: tuple[Coordinator, CoordinatorChannel], monkeypatch: pytest.MonkeyPatch
) -> None:
    ranges = []
    between = Snapshot.items_between

    def items_between(snapshot: Snapshot, start: int, end: int) -> list[Entry]:
        ranges.append((start, end))
        return between(snapshot, start, end)

    monkeypatch.setattr(Snapshot, "items_between", items_between)
    monkeypatch.setattr(Snapshot, "entries", property(lambda _: pytest.fail("all entries are decoded")))
    unit, read_messages = run_unit(store, pair)
    assert end_of_committed_items(read_messages) == unit.end
    assert ranges == [(0, ITEMS)]


def test_unit_is_executed_to_its_end(store: StoreDir, pair: tuple[Coordinator, CoordinatorChannel]) -> None:
    unit, read_messages = run_unit(store, pair)
    assert end_of_committed_items(read_messages) == unit.end == ITEMS


def test_unit_ends_at_the_smallest_shrink(store: StoreDir, pair: tuple[Coordinator, CoordinatorChannel]) -> None:
    """A message for a unit with another start does not affect this unit."""
    shrinks = (Shrink(start=7, end=1), Shrink(start=0, end=3), Shrink(start=0, end=5))
    _, read_messages = run_unit(store, pair, lambda coordinator: coordinator.send(*shrinks))
    assert end_of_committed_items(read_messages) == 3


def test_drain_ends_a_unit_after_the_current_item(
    store: StoreDir, pair: tuple[Coordinator, CoordinatorChannel]
) -> None:
    _, read_messages = run_unit(store, pair, lambda coordinator: coordinator.send(Drain()))
    assert end_of_committed_items(read_messages) == 1


def test_worker_with_leaked_descriptors_ends_its_unit_as_worn(
    store: StoreDir, pair: tuple[Coordinator, CoordinatorChannel]
) -> None:
    with contextlib.ExitStack() as leaked:

        def leak(_coordinator: Coordinator) -> None:
            for _ in range(DESCRIPTORS_LEAKED_MAX + 50):
                leaked.enter_context(open(os.devnull))

        _, read_messages = run_unit(store, pair, leak)
    assert end_of_committed_items(read_messages) == 16
    assert isinstance(read_messages[-1], Finished)
    assert read_messages[-1].is_worn


def test_worker_that_cannot_continue_reports_the_reason_and_ends(
    store: StoreDir, pair: tuple[Coordinator, CoordinatorChannel]
) -> None:
    def refuse() -> None:
        raise StoreUnwritable("full") from OSError(errno.ENOSPC, "full")

    _, read_messages = run_unit(store, pair, before_commit=refuse)
    assert read_messages[1:] == [GaveUp(code="store_unwritable", message="full", hint=None)]


def test_worker_without_descriptors_crashes_instead_of_blaming_the_disk(
    store: StoreDir, pair: tuple[Coordinator, CoordinatorChannel]
) -> None:
    """The worker crashes, and another worker repeats its unit."""

    def refuse() -> None:
        raise StoreUnwritable("none left") from OSError(errno.EMFILE, "none left")

    with pytest.raises(StoreUnwritable):
        run_unit(store, pair, before_commit=refuse)


def test_failed_task_set_up_is_reported(store: StoreDir, pair: tuple[Coordinator, CoordinatorChannel]) -> None:
    def refuse() -> None:
        raise InvalidConfiguration("no such task", hint="look")

    _, read_messages = run_unit(store, pair, before_commit=refuse)
    assert read_messages[1:] == [GaveUp(code="invalid_configuration", message="no such task", hint="look")]


class RefusedRunner(CheapRunner):
    """A runner that has no descriptor left to set up tasks."""

    def set_up(self, tasks: Sequence[str]) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def _set_up_without_descriptors(
    store: StoreDir, pair: tuple[Coordinator, CoordinatorChannel], *, units_before: int
) -> list[MessageFromWorker]:
    coordinator, channel = pair
    batch = make_batch(store, [b"a"], shard_items=1)
    worker = make_worker(store, batch, channel, RefusedRunner(batch.plan().tasks, lambda: None, lambda: False))
    worker._units = units_before
    coordinator.send(Assign(unit=WorkUnit(shard=batch.plan().shards[0].id, start=0, end=1, tasks=FILE_TASKS), epoch=1))
    worker.run()
    return coordinator.read_messages()


def test_new_worker_that_cannot_set_up_its_tasks_reports_the_reason(
    store: StoreDir, pair: tuple[Coordinator, CoordinatorChannel]
) -> None:
    """A task may have lowered the limit of open files. Then every replacement worker would also die."""
    _, gave_up = _set_up_without_descriptors(store, pair, units_before=0)
    assert isinstance(gave_up, GaveUp)
    assert (gave_up.code, gave_up.message) == (
        "invalid_configuration",
        "cannot set up tasks (parse, symbols, lint): Too many open files",
    )


def test_worker_whose_tasks_exhausted_its_descriptors_is_replaced(
    store: StoreDir, pair: tuple[Coordinator, CoordinatorChannel]
) -> None:
    with pytest.raises(OSError, match="Too many open files"):
        _set_up_without_descriptors(store, pair, units_before=1)


def test_worker_with_custom_tasks_holds_no_directory_open(
    store: StoreDir, pair: tuple[Coordinator, CoordinatorChannel], monkeypatch: pytest.MonkeyPatch
) -> None:
    open_directories: list[tuple[Path, ...]] = []

    def keeping_open(_: RealFiles, *directories: Path) -> AbstractContextManager[None]:
        open_directories.append(directories)
        return contextlib.nullcontext()

    monkeypatch.setattr(RealFiles, "keeping_open", keeping_open)
    run_unit(store, pair)
    assert open_directories == [()]


class ProjectRunner(CheapRunner):
    """A runner that passes the previous batch of a project task to a function, and changes its outcome."""

    def __init__(
        self,
        batch: BatchDir,
        look: Callable[[PreviousBatch | None], None] = lambda _: None,
        change: Callable[[EncodedOutcome], EncodedOutcome] = lambda encoded: encoded,
    ) -> None:
        super().__init__(batch.plan().tasks, lambda: None, lambda: False)
        self._look = look
        self._change = change

    def run_project(
        self,
        unit: WorkUnit,
        project: BatchProject,
        shards: Sequence[Shard],
        inputs: Digest,
        *,
        before: Callable[[], PreviousBatch | None] = lambda: None,
        adopt: ShardAdopter = adopt_no_shard,
    ) -> EncodedOutcome:
        self._look(before())
        return self._change(super().run_project(unit, project, shards, inputs))


def run_graph(worker: AnalysisWorker, batch: BatchDir, *served: ReusedRange) -> None:
    """Run the only item of a batch, and then a project task."""
    worker._run_unit(WorkUnit(shard=batch.plan().shards[0].id, start=0, end=1, tasks=FILE_TASKS), 1, [])
    worker._run_unit(WorkUnit(shard=ProjectWork("graph").id, start=0, end=1, tasks=("graph",)), 2, served)


@pytest.mark.parametrize(("path", "is_whole"), [(b"does/a", True), (b"fails/a", False)])
def test_project_task_is_incremental_only_if_all_its_needs_are_complete(
    store: StoreDir,
    pair: tuple[Coordinator, CoordinatorChannel],
    monkeypatch: pytest.MonkeyPatch,
    path: bytes,
    *,
    is_whole: bool,
) -> None:
    older = cast("PreviousBatch", object())
    previous: list[PreviousBatch | None] = []
    monkeypatch.setattr(AnalysisWorker, "_open_previous", lambda *_: older)
    batch = make_batch(store, [path], shard_items=1)
    worker = make_worker(store, batch, pair[1], ProjectRunner(batch, previous.append))
    run_graph(worker, batch, ReusedRange(task="graph", start=0, end=1, base="older", first=0))
    assert previous == [older if is_whole else None]


def test_adopted_shard_file_names_are_durable_before_their_outcome(
    store: StoreDir, pair: tuple[Coordinator, CoordinatorChannel]
) -> None:
    batch = make_batch(store, [b"a"], shard_items=1)
    shard = batch.plan().shards[0].id
    calls: list[Operation] = []

    def adopt(encoded: EncodedOutcome) -> EncodedOutcome:
        calls.clear()
        part = TaskOutcome(shard=shard, task="graph", start=0, end=1, type="result", file=Digest("a" * 64))
        whole = TaskOutcome(shard=encoded.outcome.shard, task="graph", start=0, end=1, type="result")
        return join_parts(whole, [EncodedOutcome(part, b"", b"")])

    files = RealFiles(WatchedCalls(RealCalls(), calls.append))
    run_graph(make_worker(store, batch, pair[1], ProjectRunner(batch, change=adopt), files), batch)
    done = [(operation.call, operation.path.name) for operation in calls]
    linked = [call for call, _ in done].index("link")
    assert ("fsync", layout.RESULTS) in done[:linked]


def test_channel_with_a_descriptor_above_1024_is_read(pair: tuple[Coordinator, CoordinatorChannel]) -> None:
    """A worker inherits the number from its coordinator, which may have many open files."""
    coordinator, channel = pair
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    try:
        with socket.socket(fileno=fcntl.fcntl(channel.fileno(), fcntl.F_DUPFD_CLOEXEC, 1025)) as high:
            channel = CoordinatorChannel(high)
            assert channel.try_receive() is None
            coordinator.send(Stop())
            assert channel.try_receive() == Stop()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_closed_channel_raises_coordinator_gone(pair: tuple[Coordinator, CoordinatorChannel]) -> None:
    coordinator, channel = pair
    coordinator.send(Drain())
    coordinator.connection.close()
    assert channel.receive() == Drain()
    for ask in (channel.receive, channel.try_receive, lambda: channel.send(GaveUp(code="", message="", hint=None))):
        with pytest.raises(CoordinatorLost):
            ask()


def test_channel_reset_with_unread_data_raises_coordinator_gone(
    pair: tuple[Coordinator, CoordinatorChannel],
) -> None:
    coordinator, channel = pair
    channel.send(GaveUp(code="", message="", hint=None))
    coordinator.connection.close()
    with pytest.raises(CoordinatorLost):
        channel.receive()
