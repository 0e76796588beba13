"""Power loss after any call of a run: the next run completes the batch to the same bytes.

CODEBATCH_PROOF_PREFIXES is the number of prefixes of a real run that the real program completes.
"""

from __future__ import annotations

import os
import pickle
import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from codebatch.store import layout
from codebatch.store.batches.batch_directory import iter_batches
from codebatch.store.batches.store_directory import create_store, open_store
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.snapshots.snapshots import list_snapshots, load_snapshot
from codebatch.system.files.files import RealFiles
from tests.proof.case import Case, run, run_refused
from tests.proof.world import Fault
from tests.support.command_line import CommandLine, make_many
from tests.support.disk import Disk
from tests.support.invariants import Merged, check_batch, merged
from tests.support.trace import TracedCall, read_trace, replay
from tests.support.worker_processes import open_latest

REAL_PREFIXES = int(os.environ.get("CODEBATCH_PROOF_PREFIXES", "12"))
FILES = 24
RULE = "[shard]\nfiles_average = 6\nfiles_min = 4\nfiles_max = 9\n"
SITE = Path(__file__).parent / "site"
SUPPORT = Path(__file__).parents[1] / "support"

Recorded = tuple[Path, list[TracedCall], Merged]


@pytest.mark.parametrize("jobs", [1, 3])
def test_simulated_run_recovers_from_power_loss_at_any_write(jobs: int) -> None:
    """Power loss at a call between two writes has the same effect as at the second. Of one worker, CI tries half."""
    case = Case(seed=3, items=6, failing=1, healing=0, killing=0, shard_items=4, jobs=jobs, coordinators=1, faults=())
    writes = run_refused(case)
    assert len(writes) > 100
    for at in writes if jobs > 1 or len(writes) <= REAL_PREFIXES else writes[::2]:
        run(replace(case, faults=(Fault(at=at, kind="lose power", seed=at),)))


def copy_site(site: Path) -> None:
    """Copy the module that replaces the system calls of processes, and the modules that it imports."""
    shutil.copytree(SITE, site)
    shutil.copytree(SUPPORT, site / "tests" / "support")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """The trace and the outputs of `codebatch run` with two workers over a small tree, without a store before."""
    root = tmp_path_factory.mktemp("recorded")
    site = tmp_path_factory.mktemp("outside") / "site"  # Workers import nothing of the tree.
    copy_site(site)
    (site / "trace").touch()
    _make_tree(root)
    CommandLine(root, {"PYTHONPATH": str(site)})("run", "many", "--store", "new/store", "-j", "2", "-q")
    return root, read_trace(site / "trace"), merged(open_latest(root / "new" / "store"))


def test_any_prefix_of_calls_leaves_a_consistent_store(tmp_path: Path, recorded: Recorded) -> None:
    """The disk is tried after kill -9 (everything survives), and after power loss.

    Power loss removes all unsynced data or a random part. Most calls change no data that survives, so each distinct
    disk is checked only once.
    """
    root, calls, _ = recorded
    disk = _empty_disk(root)
    counts_by_disk: dict[bytes, tuple[int, int]] = {}
    snapshots = batches = 0

    def check(length: int) -> None:
        nonlocal snapshots, batches
        for kind in ("nothing", ("killed", "something")[length % 2]):
            survivor = _copy(disk)
            if kind == "killed":
                survivor.sync()
            survivor.lose_power(random.Random(length) if kind == "something" else None)
            content = pickle.dumps(survivor.find(root))
            if content not in counts_by_disk:
                counts_by_disk[content] = _check_disk(survivor, root / "new", tmp_path / "new")
            snapshots += counts_by_disk[content][0]
            batches += counts_by_disk[content][1]

    def watched() -> Iterator[TracedCall]:
        check(0)
        for length, call in enumerate(calls, 1):
            yield call
            check(length)

    replay(disk, watched())
    assert min(snapshots, batches) > len(calls)
    assert len(counts_by_disk) > len(calls) / 4


def _check_disk(disk: Disk, root: Path, target: Path) -> tuple[int, int]:
    """Read everything that is named on a disk. Return the number of snapshots and of batches."""
    if disk.has(root / "store" / layout.STORE_FILE):
        store = open_store(RealFiles(disk.calls()), root / "store")
    else:
        _export(disk, root, target)
        store, _ = create_store(RealFiles(), target / "store")
    objects = store.objects()
    snapshots = list_snapshots(store.files, store.root)
    for document in snapshots:
        for entry in load_snapshot(store.files, store.root, document.snapshot_id).entries:
            objects.read(entry.object, entry.size)
    batches = list(iter_batches(store))
    for batch in batches:
        outcomes = OutcomeRegisters(store.files, batch.root)
        assert not outcomes.scan_new().unreadable
        ledger = load_ledger(batch.plan(), OutcomeRegisters(store.files, batch.root))
        for shard, task in ledger.iter_chain_keys:
            for link in ledger.iter_links(shard, task):
                for outcome in link.outcome.parts or (link.outcome,):
                    list(outcomes.iter_items(link.segment, outcome))
    return len(snapshots), len(batches)


def test_real_run_completes_after_a_crash_at_any_prefix(tmp_path: Path, recorded: Recorded) -> None:
    root, calls, serial = recorded
    _make_tree(tmp_path)
    codebatch = CommandLine(tmp_path)
    lengths = [round(part * len(calls) / REAL_PREFIXES) for part in range(REAL_PREFIXES + 1)]
    for length in dict.fromkeys(lengths):
        chance = random.Random(length) if length % 2 else None
        disk = _empty_disk(root)
        replay(disk, calls[:length])
        disk.lose_power(chance)
        _export(disk, root / "new", tmp_path / "new")
        codebatch("run", "many", "--store", "new/store", "-q")
        check_batch(open_latest(tmp_path / "new" / "store"), serial)


def _make_tree(directory: Path) -> None:
    make_many(directory / "many", FILES)
    (directory / "codebatch.toml").write_text(RULE, encoding="utf-8")


def _empty_disk(root: Path) -> Disk:
    """Return a disk with one empty directory, `root`."""
    disk = Disk()
    process = disk.calls()
    for directory in [*[*reversed(root.parents)][1:], root]:
        process.mkdir(directory)
    disk.sync()
    return disk


def _copy(disk: Disk) -> Disk:
    copied = pickle.loads(pickle.dumps(disk))
    assert isinstance(copied, Disk)
    return copied


def _export(disk: Disk, root: Path, target: Path) -> None:
    """Replace a real directory by a directory of a simulated disk."""
    shutil.rmtree(target, ignore_errors=True)
    if disk.has(root):
        disk.export(root, target)
