"""The current file of a worker: from its progress cell, its journal, and the snapshot."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from codebatch.model.outcome import HolderId
from codebatch.model.plan import plan_items
from codebatch.model.shard import ShardId
from codebatch.operations.project.stores import open_store
from codebatch.operations.runs.running_tasks import RunningTaskReader
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir, load_batch_snapshot
from codebatch.store.batches.holders import HolderFile
from codebatch.store.batches.journal import Began, JournalLine
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.batches.store_directory import StoreDir
from codebatch.system.host import this_host
from codebatch.system.processes.progress_cell import (
    NO_TASK,
    PHASE_BATCHED,
    PHASE_IDLE,
    PHASE_ITEM,
    PHASE_LEASE,
    ProgressCell,
    WorkerStep,
)
from tests.support.command_line import CommandLine, make_modules

WORKER = HolderFile(holder=HolderId("a" * 32), role="worker", pid=1, host=this_host(), since_ns=0)
SHARDS = (ShardId("1" * 32), ShardId("2" * 32))
SHARD_ITEMS = 4


def step(item: int, *, unit: int = 1, phase: int = PHASE_ITEM, end: int | None = None, task: int = 0) -> WorkerStep:
    """A step of the worker."""
    return WorkerStep(0, 0, 0, unit, item, item + 1 if end is None else end, phase, task)


def began(shard: int, start: int, end: int, seq: int = 0) -> JournalLine:
    """The line with which the worker begins a unit."""
    event = Began(shard=SHARDS[shard], start=start, end=end, tasks=("parse",), round=1, epoch=1)
    return JournalLine(seq=seq, at_ns=0, holder=WORKER.holder, event=event)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[StoreDir, BatchDir]:
    """A finished analysis of at least 8 files."""
    directory = tmp_path_factory.mktemp("finished")
    codebatch = CommandLine(directory)
    answer = codebatch(
        "run", make_modules(directory / "tree"), "--pipeline", "parse", "--store", "store", "--json"
    ).json
    store = open_store(directory / "store")
    return store, resolve_batch(store, answer["batch_id"])


def running_tasks(
    finished: tuple[StoreDir, BatchDir], earlier: WorkerStep, lines: list[JournalLine], later: WorkerStep
) -> list[tuple[str, str | None]]:
    """The tasks and paths that are read, if a worker makes these steps before and after its journal is read."""
    store, batch = finished
    plan = batch.plan()
    shards = tuple(
        msgspec.structs.replace(plan.shards[0], id=shard, start=SHARD_ITEMS * number, end=SHARD_ITEMS * (number + 1))
        for number, shard in enumerate(SHARDS)
    )
    reader = RunningTaskReader(store, batch, msgspec.structs.replace(plan, shards=shards))
    path = batch.root / layout.HOLDERS / layout.cell_name(WORKER.holder)
    path.unlink(missing_ok=True)
    cell = ProgressCell(batch.files, path, create=True)
    cell.write_step(earlier)
    reader.read_steps([WORKER, msgspec.structs.replace(WORKER, role="coordinator", holder=HolderId("b" * 32))])
    for line in lines:
        reader.add_line(line)
    cell.write_step(later)
    cell.close()
    return [(task.task, task.path) for task in reader.running_tasks() if task.worker == WORKER.holder]


def item_path(finished: tuple[StoreDir, BatchDir], number: int) -> str:
    """The path of an item of the batch."""
    return plan_items(load_batch_snapshot(*finished).entries)[number].text


@pytest.mark.parametrize(
    ("earlier", "lines", "later", "item"),
    [
        (step(2), [began(0, 0, 4)], step(2), 2),
        (step(2), [began(1, 0, 4)], step(3), SHARD_ITEMS + 3),
        (step(2), [began(0, 0, 4, seq=0), began(1, 0, 4, seq=3)], step(2), SHARD_ITEMS + 2),
        (step(2), [began(1, 0, 4, seq=3), began(0, 0, 4, seq=0)], step(2), SHARD_ITEMS + 2),
        (step(2), [began(1, 0, 4)], step(2, unit=2), None),
        (step(2, phase=PHASE_LEASE), [began(1, 0, 4)], step(2), None),
        (step(2), [began(1, 0, 2)], step(2), None),
        (step(2), [began(1, 3, 4)], step(2), None),
        (step(2), [], step(2), None),
        (step(2), [began(0, 0, 4)], step(0, end=4, phase=PHASE_BATCHED), None),
    ],
)
def test_path_of_a_step_is_that_of_its_shard_or_unknown(
    finished: tuple[StoreDir, BatchDir],
    earlier: WorkerStep,
    lines: list[JournalLine],
    later: WorkerStep,
    item: int | None,
) -> None:
    expected = None if item is None else item_path(finished, item)
    assert running_tasks(finished, earlier, lines, later) == [("parse", expected)]


def test_worker_without_an_item_or_a_task_is_omitted_or_unnamed(finished: tuple[StoreDir, BatchDir]) -> None:
    assert running_tasks(finished, step(2), [], step(0, end=0, phase=PHASE_IDLE)) == []
    assert running_tasks(finished, step(2), [], step(2, task=NO_TASK)) == [("-", None)]


def test_path_is_unknown_if_the_snapshot_is_damaged(finished: tuple[StoreDir, BatchDir], tmp_path: Path) -> None:
    store, batch = finished
    copy = Path(shutil.copytree(store.root, tmp_path / "store", symlinks=True))
    for index in copy.glob("snapshots/*/files.index.jsonl.zst"):
        index.write_bytes(b"damaged")
    damaged = open_store(copy)
    place = (damaged, resolve_batch(damaged, batch.id))
    assert [path for _, path in running_tasks(place, step(2), [began(0, 0, 4)], step(2))] == [None]
