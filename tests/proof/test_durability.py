"""Durability of everything that a store reports as done, and of a store whose creation was interrupted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch.coordinator.analysis.merge import merge_outputs
from codebatch.model.outcome import Commit, HolderId, TaskOutcome, WorkUnit
from codebatch.model.plan import Plan, plan_items
from codebatch.model.shard import ProjectWork
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.store.batches.batch_directory import BatchDir, batch_ids, make_batch_directories, open_batch
from codebatch.store.batches.store_directory import StoreDir, create_store, open_store
from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import OutcomeCommitter, OutcomeRegisters
from codebatch.store.results.outputs import current_outputs
from codebatch.store.snapshots.snapshots import load_snapshot
from codebatch.system.files.files import RealFiles
from codebatch.system.files.system_calls import RealCalls
from codebatch_workers.runtime.project import BatchProject
from codebatch_workers.runtime.results import TaskFailure, UnitResults
from codebatch_workers.runtime.sources import load_source
from tests.support.batches import FILE_TASKS, CheapRunner, make_batch
from tests.support.calls import Fate, Operation, WatchedCalls
from tests.support.crashes import PLACE, killed_from
from tests.support.disk import Disk
from tests.support.schedule import Killed

HOLDER = HolderId("0" * 32)


@pytest.fixture
def disk() -> Disk:
    return Disk()


def _store(disk: Disk) -> StoreDir:
    return create_store(RealFiles(disk.calls()), PLACE)[0]


def _reopened(disk: Disk, batch: BatchDir) -> BatchDir:
    disk.lose_power()
    return open_batch(open_store(RealFiles(disk.calls()), PLACE), batch.id)


def _commit(store: StoreDir, batch: BatchDir, calls: WatchedCalls | None = None) -> Commit:
    """Execute the only shard of a batch and its project tasks as a worker does. Return the commit of the shard."""
    plan = batch.plan()
    runner = CheapRunner(plan.tasks, lambda: None, lambda: False)
    entries = plan_items(load_snapshot(store.files, store.root, plan.snapshot_id).entries)
    unit = WorkUnit(shard=plan.shards[0].id, start=0, end=len(entries), tasks=FILE_TASKS)
    unit_results = UnitResults(start=0, items=entries, results={name: [] for name in unit.tasks})
    for entry in entries:
        source = load_source(entry, lambda entry: store.objects().read(entry.object), {})
        assert not isinstance(source, TaskFailure)
        for name, result in runner.run_item(source, unit.tasks).items():
            unit_results.results[name].append(result)
    committer = OutcomeCommitter(RealFiles(calls) if calls else store.files, batch.root, HOLDER)
    first = committer.commit_outcomes(list(runner.encode_unit(unit, unit_results)), epoch=1, round_=1)
    for task in plan.project_tasks:
        outcomes = OutcomeRegisters(store.files, batch.root)
        ledger = load_ledger(plan, outcomes)
        project = BatchProject(plan, entries, ledger, outcomes, read=lambda _: b"", needs=plan.task_names)
        unit = WorkUnit(shard=ProjectWork(task).id, start=0, end=1, tasks=(task,))
        committer.commit_outcomes(
            [runner.run_project(unit, project, plan.shards, ledger.inputs_digest(task))], epoch=1, round_=1
        )
    return first


def _watched(disk: Disk, watch: Callable[[Operation], Fate | None]) -> WatchedCalls:
    return WatchedCalls(disk.calls(), watch)


def test_store_below_new_directories_survives_power_loss(disk: Disk) -> None:
    store = _store(disk)
    disk.lose_power()
    assert open_store(RealFiles(disk.calls()), PLACE).id == store.id


def test_file_in_a_new_directory_survives_power_loss(disk: Disk) -> None:
    path = PLACE / "new" / "file"
    _store(disk).files.write_atomic(path, b"content")
    disk.lose_power()
    assert RealFiles(disk.calls()).read(path) == b"content"


@pytest.mark.parametrize("is_met", [False, True])
def test_store_creation_killed_at_any_write_survives_power_loss(*, is_met: bool) -> None:
    """A second process creates the store afterwards, or with `is_met` at the same time."""
    assert any(_survives_a_killed_creator(at, is_met=is_met) for at in range(1000))


def _survives_a_killed_creator(at: int, *, is_met: bool) -> bool:
    """Check the store after its creator was killed at a write. Return whether the creator ended before that write."""
    disk = Disk()
    is_over = False

    def make() -> None:
        nonlocal is_over
        with contextlib.suppress(Killed):
            create_store(RealFiles(_watched(disk, killed_from(at))), PLACE)
            is_over = True

    def meet(operation: Operation) -> Fate | None:
        if (operation.call, operation.path.name) == ("link", "store.json"):
            make()
        return None

    if not is_met:
        make()
    store, _ = create_store(RealFiles(_watched(disk, meet) if is_met else disk.calls()), PLACE)
    with store.writing():
        pass
    assert not RealFiles(disk.calls()).unfinished(PLACE)
    disk.lose_power()
    assert open_store(RealFiles(disk.calls()), PLACE).id == store.id
    return is_over


@pytest.mark.parametrize("names", ["objects", "snapshots", "batches", "objects snapshots batches"])
def test_recreated_directories_survive_power_loss(disk: Disk, names: str) -> None:
    store = _store(disk)
    for name in names.split():
        store.files.remove_tree(store.root / name)
    disk.sync()
    batch = _reopened(disk, make_batch(store, [b"a"], shard_items=1))
    (entry,) = load_snapshot(batch.files, PLACE, batch.plan().snapshot_id).entries
    assert ObjectStore(batch.files, PLACE / "objects").read(entry.object, entry.size)


@pytest.mark.parametrize("died_in", ["objects", "snapshots", "batches"])
def test_batch_of_a_killed_creator_survives_power_loss(disk: Disk, died_in: str) -> None:
    store = _store(disk)

    def die(operation: Operation) -> Fate | None:
        return Fate(Killed()) if operation.call == "fsync" and operation.path.name == died_in else None

    with pytest.raises(Killed):
        make_batch(StoreDir(RealFiles(_watched(disk, die)), store.root, store.id), [b"a"], shard_items=1)
    existing = [open_batch(store, name) for name in batch_ids(store)]
    batch = existing[0] if existing else make_batch(store, [b"a"], shard_items=1)
    make_batch_directories(batch)
    batch = _reopened(disk, batch)
    (entry,) = load_snapshot(batch.files, PLACE, batch.plan().snapshot_id).entries
    assert ObjectStore(batch.files, PLACE / "objects").read(entry.object, entry.size)


def test_commit_survives_power_loss_with_its_bytes(disk: Disk) -> None:
    store = _store(disk)
    batch = make_batch(store, [b"a", b"b"], shard_items=2)
    committed = _commit(store, batch)
    batch = _reopened(disk, batch)
    outcomes = OutcomeRegisters(batch.files, batch.root)
    commits = [commit for commit in outcomes.scan_new().commits if len(commit.outcomes) == len(FILE_TASKS)]
    assert [sorted(commit.outcomes, key=_task) for commit in commits] == [sorted(committed.outcomes, key=_task)]
    for outcome in committed.outcomes:
        assert any(outcomes.iter_items(committed.segment, outcome))


def test_outputs_and_inputs_survive_power_loss_after_a_worker_died(
    disk: Disk,
) -> None:
    """The worker is killed between its links and the fsync of their directory. Another process merges its outcomes."""
    store = _store(disk)
    batch = make_batch(store, [b"a", b"b"], shard_items=2)
    links = 0

    def watch(operation: Operation) -> Fate | None:
        nonlocal links
        links += operation.call == "link"
        return Fate(Killed()) if links == len(batch.plan().tasks) and operation.call == "fsync" else None

    with pytest.raises(Killed):
        _commit(store, batch, _watched(disk, watch))
    plan = batch.plan()
    merged = merge_outputs(batch, plan, _ledger_of(batch, plan))
    batch = _reopened(disk, batch)
    outputs = current_outputs(batch)
    assert outputs is not None
    assert outputs.manifest == merged.manifest
    assert outputs.manifest.generation == 0
    for task in outputs.manifest.tasks:
        assert all(list(outputs.iter_items(task, index)) for index in range(len(task.shards)))
    ledger = _ledger_of(batch, plan)
    assert not any(map(ledger.open_units, ledger.work))


def test_second_merge_makes_existing_outputs_durable(disk: Disk) -> None:
    """The first merge is killed between its rename and the fsync. The second merge finds that the outputs exist."""
    store = _store(disk)
    batch = make_batch(store, [b"a", b"b"], shard_items=2)
    _commit(store, batch)
    plan = batch.plan()
    renames = 0

    def watch(operation: Operation) -> Fate | None:
        nonlocal renames
        renames += operation.call == "rename"
        return Fate(Killed()) if renames and operation.call == "fsync" else None

    dying = BatchDir(RealFiles(_watched(disk, watch)), batch.root, batch.about)
    with pytest.raises(Killed):
        merge_outputs(dying, plan, _ledger_of(batch, plan))
    merge_outputs(batch, plan, _ledger_of(batch, plan))
    assert current_outputs(_reopened(disk, batch)) is not None


def test_store_creation_can_continue_after_a_kill_at_any_write(tmp_path: Path) -> None:
    for at in range(1000):
        root = tmp_path / str(at)
        try:
            create_store(RealFiles(WatchedCalls(RealCalls(), killed_from(at))), root)
        except Killed:
            assert create_store(RealFiles(), root)[0].id == open_store(RealFiles(), root).id
        else:
            assert at > 10
            return


def _ledger_of(batch: BatchDir, plan: Plan) -> OutcomeLedger:
    return load_ledger(plan, OutcomeRegisters(batch.files, batch.root))


def _task(outcome: TaskOutcome) -> str:
    return outcome.task
