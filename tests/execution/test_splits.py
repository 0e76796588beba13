"""Tests of merging: the merged bytes do not depend on how the work on a shard was divided. No worker runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from codebatch.coordinator.analysis.merge import merge_outputs
from codebatch.coordinator.analysis.planning import make_plan, resolve_tasks
from codebatch.errors import StoreCorrupt
from codebatch.model.digest import Digest
from codebatch.model.entry import Entry
from codebatch.model.outcome import WorkUnit
from codebatch.model.plan import Plan, plan_items
from codebatch.model.shard import ShardRule
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.snapshotting.selection import SourceRules
from codebatch.snapshotting.snapshot import take_snapshot
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir, create_batch
from codebatch.store.batches.holders import new_holder_id
from codebatch.store.batches.store_directory import StoreDir, create_store
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import OutcomeCommitter, OutcomeRegisters
from codebatch.store.results.outputs import MergedOutputs
from codebatch.store.snapshots.snapshots import Snapshot, load_snapshot
from codebatch.system.files.files import RealFiles
from codebatch_workers.runtime.execution import TaskRunner
from codebatch_workers.runtime.results import ReusedRecords, TaskFailure, UnitResults
from codebatch_workers.runtime.sources import iter_sources

ITEMS = 24


@pytest.fixture
def planned(tmp_path: Path) -> tuple[StoreDir, Plan, Snapshot]:
    """A store, a snapshot of generated files, and a plan with one shard."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(ITEMS):
        body = "".join(f"def f{number}_{line}(a, b):\n    return a + {line}\n\n" for line in range(60))
        (tree / f"m{number:02}.py").write_text(f"import os\n{body}", encoding="utf-8")
    store, _ = create_store(RealFiles(), tmp_path / "store")
    result = take_snapshot(store.files, store.root, [tree], SourceRules(), now=lambda: 0.0)
    snapshot = load_snapshot(store.files, store.root, result.snapshot_id)
    catalogue = TaskCatalogue()
    tasks = resolve_tasks(catalogue, ("parse", "analyze", "symbols", "lint"))
    rule = ShardRule(files_average=64, files_min=ITEMS, files_max=256)
    plan = make_plan(catalogue, snapshot, "full", tasks, rule)
    assert len(plan.shards) == 1
    return store, plan, snapshot


def _commit(store: StoreDir, batch: BatchDir, plan: Plan, snapshot: Snapshot, unit: WorkUnit, scratch: Path) -> None:
    """Execute and commit a unit as a worker does, without a process."""
    scratch.mkdir(parents=True, exist_ok=True)
    runner = TaskRunner(TaskCatalogue(), plan.tasks, scratch)
    items = plan_items(snapshot.entries)
    done = UnitResults(start=unit.start, results={name: [] for name in unit.tasks})
    sources = []
    loaded = ((items[item], plan.item_contexts(item)) for item in range(unit.start, unit.end))
    for item, source in enumerate(iter_sources(loaded, lambda e: store.objects().read(e.object, e.size)), unit.start):
        assert not isinstance(source, TaskFailure)
        for name, result in runner.run_item(source, unit.tasks).items():
            done.results[name].append(result)
        sources.append(source)
        done.items.append(items[item])
    for name in unit.tasks:
        partial = [result for result in done.results[name] if not isinstance(result, ReusedRecords)]
        done.results[name] = [*runner.complete_results(name, sources, partial)]
    committer = OutcomeCommitter(store.files, batch.root, new_holder_id())
    committer.commit_outcomes(list(runner.encode_unit(unit, done)), epoch=1, round_=1)
    committer.close()


def _merge(planned: tuple[StoreDir, Plan, Snapshot], cuts: Sequence[int], scratch: Path, at_ns: int) -> MergedOutputs:
    store, plan, snapshot = planned
    batch = create_batch(store, plan, sources=(), at_ns=at_ns)
    for start, end in zip([0, *cuts], [*cuts, ITEMS], strict=True):
        unit = WorkUnit(shard=plan.shards[0].id, start=start, end=end, tasks=plan.task_names)
        _commit(store, batch, plan, snapshot, unit, scratch / f"{at_ns}-{start}")
    return merge_outputs(batch, plan, load_ledger(plan, OutcomeRegisters(store.files, batch.root)))


@pytest.mark.parametrize("cuts", [[1], [12], [23], [5, 6, 20], list(range(1, ITEMS))])
def test_separately_committed_ranges_merge_to_identical_files(
    tmp_path: Path, planned: tuple[StoreDir, Plan, Snapshot], cuts: list[int]
) -> None:
    whole = _merge(planned, [], tmp_path / "scratch", 1)
    parts = _merge(planned, cuts, tmp_path / "scratch", 2)
    assert parts.manifest.result_digest == whole.manifest.result_digest
    for task in whole.manifest.tasks:
        for index in range(len(task.shards)):
            assert parts.shard_path(task, index).read_bytes() == whole.shard_path(task, index).read_bytes()


def test_separately_committed_tasks_merge_to_identical_files(
    tmp_path: Path, planned: tuple[StoreDir, Plan, Snapshot]
) -> None:
    store, plan, snapshot = planned
    whole = _merge(planned, [], tmp_path / "scratch", 1)
    batch = create_batch(store, plan, sources=(), at_ns=2)
    for number, task in enumerate(reversed(plan.task_names)):
        unit = WorkUnit(shard=plan.shards[0].id, start=0, end=ITEMS, tasks=(task,))
        _commit(store, batch, plan, snapshot, unit, tmp_path / f"apart-{number}")
    by_task = merge_outputs(batch, plan, load_ledger(plan, OutcomeRegisters(store.files, batch.root)))
    assert by_task.manifest.result_digest == whole.manifest.result_digest


def test_truncated_segment_is_named_and_prevents_publishing(
    tmp_path: Path, planned: tuple[StoreDir, Plan, Snapshot]
) -> None:
    store, plan, snapshot = planned
    batch = create_batch(store, plan, sources=(), at_ns=1)
    unit = WorkUnit(shard=plan.shards[0].id, start=0, end=ITEMS, tasks=plan.task_names)
    _commit(store, batch, plan, snapshot, unit, tmp_path / "scratch")
    (segment,) = (batch.root / layout.RESULTS).iterdir()
    with open(segment, "r+b") as file:
        file.truncate(segment.stat().st_size // 2)
    ledger = load_ledger(plan, OutcomeRegisters(store.files, batch.root))
    with pytest.raises(StoreCorrupt, match=segment.name):
        merge_outputs(batch, plan, ledger)
    assert list((batch.root / layout.OUTPUTS).iterdir()) == []


def test_files_are_prefetched_in_order_and_large_files_alone() -> None:
    sizes = [10] * 40 + [5_000_000, 10, 10]
    entries = [Entry(b"%02d" % place, "file", False, size, Digest("")) for place, size in enumerate(sizes)]
    read: list[bytes] = []

    def read_one(entry: Entry) -> bytes:
        read.append(entry.path)
        return b""

    read_counts: dict[bytes, int] = {}
    for source in iter_sources(((entry, {}) for entry in entries), read_one):
        assert not isinstance(source, TaskFailure)
        read_counts[source.path] = len(read)
    assert list(read_counts) == [entry.path for entry in entries]
    assert list(read_counts.values()) == [32] * 32 + [40] * 8 + [41] + [43] * 2
