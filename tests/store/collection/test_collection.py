"""Tests of garbage collection: it never removes needed data, even if it is killed or its writes are refused."""

from __future__ import annotations

import copy
import errno
import os
import random
from pathlib import Path

import msgspec
import pytest

from codebatch.errors import StoreInUse, StoreUntrusted, UnknownId
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.entry import Entry
from codebatch.model.outcome import TaskOutcome
from codebatch.model.record import Ast, FileChange
from codebatch.model.record_counts import RecordCounts
from codebatch.operations import ignore_note
from codebatch.operations.runs.collection import collect_garbage, collect_garbage_after_run, read_store_stats
from codebatch.protocol.record_frames import FrameWriter
from codebatch.store.batches.batch_directory import BatchDir, batch_ids, open_batch
from codebatch.store.batches.holders import HolderFile, HolderRegistration, new_holder_id
from codebatch.store.batches.pins import pin_reference, pinned_ids, unpin_reference
from codebatch.store.batches.store_directory import StoreDir, create_store, open_store
from codebatch.store.batches.unfinished import sweep_unfinished
from codebatch.store.maintenance.collection import NS_PER_DAY, execute_collection, plan_collection
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.store.objects.repacking import choose_packs
from codebatch.store.results.adoption import adopt_batch
from codebatch.store.results.compaction import read_compacted
from codebatch.store.results.outcomes import OutcomeCommitter, encode_outcome
from codebatch.store.snapshots.snapshots import load_snapshot, reset_snapshot_age, snapshot_ids
from codebatch.system.clock import wall_ns
from codebatch.system.files.files import RealFiles
from codebatch.system.host import this_host
from tests.support import stores as support
from tests.support.batches import CheapRunner, make_batch
from tests.support.calls import Fate, Operation, WatchedCalls
from tests.support.command_line import write
from tests.support.crashes import PLACE, killed_at_each_write, refused_at_each_write
from tests.support.disk import Disk
from tests.support.invariants import merged
from tests.support.schedule import Killed
from tests.support.stores import collect_all, make_merged


def _check_readable(store: StoreDir, batch_id: str) -> None:
    """Check that everything that a batch names is readable: its snapshot, objects and records."""
    batch = open_batch(store, batch_id)
    objects = store.objects()
    for entry in load_snapshot(store.files, store.root, batch.about.snapshot_id).entries:
        assert objects.read(entry.object, entry.size)
    merged(batch)


def test_gc_keeps_the_latest_batches_and_removes_everything_else(store: StoreDir) -> None:
    batches = [make_merged(store, [b"shared", b"own-%d" % second], second=second) for second in range(4)]
    collect_all(store, keep=2)
    assert batch_ids(store) == [batch.id for batch in batches[2:]]
    assert snapshot_ids(store.files, store.root) == sorted(batch.about.snapshot_id for batch in batches[2:])
    for batch in batches[2:]:
        _check_readable(store, batch.id)
    named = {entry.object for batch in batches[2:] for entry in _entries(store, batch)}
    assert {key.hex() for _, content, _ in store.objects().iter_packs() for key in content.all_keys} == named
    assert not [path for path in store.root.rglob("*") if path.name.endswith((".tmp", ".part"))]


def test_comparison_batches_do_not_displace_batches_of_the_tree(store: StoreDir) -> None:
    runs = [make_merged(store, [b"run-%d" % second], second=second) for second in range(2)]
    compared = [make_merged(store, [b"base-%d" % second], second=second, for_comparison=True) for second in range(2, 5)]
    collect_all(store, keep=2)
    assert batch_ids(store) == [batch.id for batch in (*runs, *compared[1:])]


def test_gc_retains_bases_of_an_unfinished_batch_until_completion(store: StoreDir) -> None:
    first, second = (make_merged(store, [b"own-%d" % number], second=number) for number in range(2))
    third = make_batch(store, [b"own-2"], shard_items=1, bases=(first.id,), at_ns=2 * 10**9)
    collect_all(store, keep=1)
    assert batch_ids(store) == [first.id, second.id, third.id]
    support.work(store, third)
    support.merge(third)
    collect_all(store, keep=1)
    assert batch_ids(store) == [third.id]


def _entries(store: StoreDir, batch: BatchDir) -> list[Entry]:
    return load_snapshot(store.files, store.root, batch.about.snapshot_id).entries


def test_gc_retains_failed_batches_without_displacing_complete_batches(store: StoreDir) -> None:
    complete = make_merged(store, [b"complete"], second=0)
    failed = [make_merged(store, [b"fails-%d" % second], second=second) for second in range(1, 4)]
    collect_all(store, keep=1)
    assert batch_ids(store) == [complete.id, failed[-1].id]


def test_gc_keeps_pinned_held_and_unfinished_batches(store: StoreDir) -> None:
    pinned, held, last = (make_merged(store, [b"%d" % second], second=second) for second in range(3))
    pending = make_batch(store, [b"pending"], shard_items=1, at_ns=3 * 10**9)
    latest = make_merged(store, [b"latest"], second=4)
    for batch in (pinned, latest):
        pin_reference(store, batch.id)
    about = HolderFile(holder=new_holder_id(), role="worker", pid=1, host=this_host(), since_ns=1)
    holder = HolderRegistration(store.files, held.root, about)
    collect_all(store, keep=1)
    holder.close()
    ids = [pinned.id, held.id, last.id, pending.id, latest.id]
    assert batch_ids(store) == ids, "a pinned batch was counted as one of the latest"
    for batch in (pinned, latest):
        unpin_reference(store, batch.id)
    collect_all(store, keep=1)
    assert batch_ids(store) == [pending.id, latest.id]
    assert {pending.about.snapshot_id, latest.about.snapshot_id} == {*snapshot_ids(store.files, store.root)}


def test_gc_keeps_the_latest_run_and_young_snapshots_if_the_clock_was_set_back(store: StoreDir) -> None:
    just_run = make_merged(store, [b"just run"], second=1)
    future_batches = [make_merged(store, [b"%d" % second], second=second) for second in (10, 11)]
    going = plan_collection(store, keep=1, now_ns=0, on_skipped=ignore_note, spared={just_run.id})
    assert [path.name for path in going.batches] == [future_batches[0].id]
    assert going.snapshots == []


def test_unreferenced_snapshot_is_retained_for_14_days_or_while_pinned(store: StoreDir) -> None:
    batch = make_merged(store, [b"a"])
    store.files.remove_tree(batch.root)
    snapshot = store.root / "snapshots" / batch.about.snapshot_id
    taken_ns = snapshot.stat().st_mtime_ns
    (entry,) = load_snapshot(store.files, store.root, snapshot.name).entries
    collect_all(store, keep=1, now_ns=taken_ns + 14 * NS_PER_DAY)
    pin_reference(store, snapshot.name)
    collect_all(store, keep=1, now_ns=taken_ns + 14 * NS_PER_DAY + 1)
    assert store.objects().read(entry.object)
    unpin_reference(store, snapshot.name[:9])
    collect_all(store, keep=1, now_ns=taken_ns + 14 * NS_PER_DAY + 1)
    assert not snapshot.exists()
    assert store.objects().find_location(entry.object) is None


def test_dry_run_reports_the_same_counts_and_changes_nothing(store: StoreDir) -> None:
    for second in range(3):
        make_merged(store, [b"%d" % second], second=second)
    for path in (store.root / "snapshots").iterdir():
        os.utime(path, ns=(0, 0))
    before = {path: path.stat().st_mtime_ns for path in store.root.rglob("*")}
    collected = collect_garbage(store, keep=1, is_dry=True)
    assert {path: path.stat().st_mtime_ns for path in store.root.rglob("*")} == before
    assert (len(collected.batches), len(collected.snapshots), collected.packs, collected.objects) == (2, 2, 2, 2)
    size = read_store_stats(store).bytes
    assert collect_garbage(store, keep=1) == collected
    settled_bytes = (open_batch(store, collected.settled[0]).root / "settled.json").stat().st_size
    indexes = 2 * (24 + 32 + 3 * 8 + 32)  # the indexes of packs of one object
    assert size - read_store_stats(store).bytes == collected.freed_bytes - settled_bytes + indexes


def test_gc_does_not_wait_for_writers(store: StoreDir) -> None:
    batch = make_merged(store, [b"a"])
    with store.writing(), pytest.raises(StoreInUse):
        collect_garbage(store, keep=1)
    with store.writing():
        assert collect_garbage_after_run(store, keep=1, ran=batch, note=ignore_note) is None


def test_run_collects_only_its_own_source_and_never_its_own_batch(store: StoreDir) -> None:
    """The number of batches kept for another source is a matter of that source's configuration."""
    batches = [make_merged(store, [b"%d" % second], second=second) for second in range(3)]
    elsewhere = [
        adopt_batch(store, batch, sources=(b"/elsewhere",), stat_cache="", at_ns=at * 10**9)
        for at, batch in enumerate(batches, 3)
    ]
    collected = collect_garbage_after_run(store, keep=1, ran=batches[0], note=ignore_note)
    assert collected is not None
    assert collected.batches == (batches[1].id,)
    assert [read_compacted(candidate) is None for candidate in (batches[0], batches[2], elsewhere[-1])] == [
        True,
        False,
        True,
    ]
    assert len(collect_garbage(store, keep=1).batches) == 3


def test_gc_ignores_batches_that_were_removed_meanwhile(store: StoreDir) -> None:
    batches = [make_merged(store, [b"%d" % second], second=second) for second in range(3)]
    going = plan_collection(store, keep=1, now_ns=0, on_skipped=ignore_note)
    for batch in batches[1:]:
        store.files.remove_tree(batch.root)
    execute_collection(store, going, ignore_note)
    assert batch_ids(store) == []


def test_gc_removes_links_in_a_batch_without_following_them(store: StoreDir, tmp_path: Path) -> None:
    precious = write(tmp_path / "outside" / "precious", "x")
    old = make_merged(store, [b"a"], second=1)
    make_merged(store, [b"b"], second=2)
    (old.root / "outputs" / "link").symlink_to(tmp_path / "outside")
    (old.root / "link").symlink_to(precious)
    collect_all(store, keep=1)
    assert not old.root.exists()
    assert precious.exists()


def test_run_collects_objects_once_a_day(store: StoreDir) -> None:
    def looks(now_ns: int) -> bool:
        return (
            plan_collection(store, keep=1, now_ns=now_ns, on_skipped=ignore_note, with_objects=None).packs is not None
        )

    def looked(since: Path) -> list[bool]:
        return [looks(since.stat().st_mtime_ns + at) for at in (-1, 0, NS_PER_DAY - 1, NS_PER_DAY)]

    assert looked(store.root / "store.json") == [True, False, False, True]
    collect_all(store, keep=1)
    os.utime(store.root / "store.json", (0, 0))
    assert looked(store.root / "cache" / "objects-collected") == [True, False, False, True]


@pytest.mark.parametrize("damaged", ["batch.json", "files.index.jsonl.zst", "manifest.json"])
def test_gc_keeps_all_objects_if_a_batch_is_damaged(store: StoreDir, damaged: str) -> None:
    for second in range(2):
        make_merged(store, [b"%d" % second], second=second)
    batch = open_batch(store, batch_ids(store)[-1])
    (path,) = [
        *batch.root.rglob(damaged),
        *(store.root / "snapshots" / batch.about.snapshot_id).glob(damaged),
    ]
    path.write_bytes(b"damaged")
    before = {*(store.root / "objects").iterdir()}
    notes: list[str] = []
    collect_all(store, keep=1, notes=notes)
    assert {*(store.root / "objects").iterdir()} == before
    assert batch.id in batch_ids(store)
    assert "removed" in notes[0]


def record_naming(kind: str, digest: Digest) -> Ast | FileChange:
    """Return a record of the file `a` that names an object."""
    if kind == "ast":
        return Ast(path="a", object=digest, format="x")
    return FileChange(path="a", before=digest_bytes(b"aaa"), after=digest, added=0, removed=0)


@pytest.mark.parametrize("kind", ["ast", "change"])
def test_gc_keeps_objects_that_records_of_open_or_finished_work_reference(
    store: StoreDir, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    with PackWriter(store.objects()) as writer:
        tree = writer.add(b"a tree")
        writer.add(b"nobody's" * 1000)

    def run_item(*arguments: object) -> object:
        results = plain(*arguments)  # type: ignore[arg-type]
        results["parse"] = [record_naming(kind, tree)]
        return results

    plain = CheapRunner.run_item
    monkeypatch.setattr(CheapRunner, "run_item", run_item)
    batch = make_batch(store, [b"a"], shard_items=1)
    support.work(store, batch)
    collect_all(store, keep=1)
    assert store.objects().read(tree) == b"a tree"
    support.merge(batch)
    store.files.remove_tree(batch.root / "outcomes")
    collect_all(store, keep=1)
    assert store.objects().read(tree) == b"a tree"
    store.files.remove_tree(batch.root)
    collect_all(store, keep=1)
    assert store.objects().find_location(tree) is None


def test_retaken_snapshot_counts_as_young(store: StoreDir) -> None:
    batch = make_merged(store, [b"a"])
    snapshot = store.root / "snapshots" / batch.about.snapshot_id
    before = {path.name for path in snapshot.iterdir()}
    os.utime(snapshot, ns=(0, 0))
    reset_snapshot_age(store.files, store.root, snapshot.name)
    assert wall_ns() - snapshot.stat().st_mtime_ns < NS_PER_DAY
    assert {path.name for path in snapshot.iterdir()} == before


def test_gc_keeps_objects_of_retried_results_that_are_not_merged_yet(store: StoreDir) -> None:
    """The batch was merged with a failure. A `resume` committed a result for it and was killed before the merge."""
    with PackWriter(store.objects()) as writer:
        tree = writer.add(b"a tree")
    batch = make_merged(store, [b"fails"])
    (shard,) = batch.plan().shards
    counts = RecordCounts(kinds={"ast": 1})
    outcome = TaskOutcome(shard=shard.id, task="symbols", start=0, end=1, type="result", counts=counts)
    line = msgspec.json.encode(Ast(path="fails", object=tree, format="x")) + b"\n"
    committer = OutcomeCommitter(store.files, batch.root, new_holder_id())
    committer.commit_outcomes([encode_outcome(outcome, [line], FrameWriter())], epoch=2, round_=2)
    committer.close()
    collect_all(store, keep=1)
    assert store.objects().read(tree) == b"a tree"


# -- Killed, without power, on a full disk ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def old() -> tuple[Disk, list[str]]:
    """A disk with a store of three batches, and their ids. Tests copy it."""
    disk = Disk()
    store = create_store(RealFiles(disk.calls()), PLACE)[0]
    batches = [make_merged(store, [b"shared", b"own-%d" % at], second=at) for at in range(3)]
    disk.sync()
    return disk, [batch.id for batch in batches]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_gc_killed_at_any_write_leaves_everything_needed(old: tuple[Disk, list[str]], seed: int | None) -> None:
    """The check is made with and without a power loss after the kill. The next collection reaches the same state."""
    disk, batches = old
    for left, _ in killed_at_each_write(disk, _collect, seed=seed, least=20):
        store = open_store(RealFiles(left.calls()), PLACE)
        for batch_id in batch_ids(store):
            _check_readable(store, batch_id)
        assert batch_ids(store)[-2:] == batches[1:]
        collect_all(store, keep=2)
        assert batch_ids(store) == batches[1:]
        _check_collected(store)


def _collect(files: RealFiles) -> None:
    collect_all(open_store(files, PLACE), keep=2)


def _check_collected(store: StoreDir) -> None:
    """Check that the store has no duplicate, unneeded or unfinished files."""
    sweep_unfinished(store.files, [store.root / "batches", store.root / "snapshots"])
    for batch_id in batch_ids(store):
        _check_readable(store, batch_id)
    objects = store.objects()
    needed = set()
    for name in snapshot_ids(store.files, store.root):
        needed |= {bytes.fromhex(digest) for digest in load_snapshot(store.files, store.root, name).object_digests()}
    assert choose_packs(objects, needed).removed == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_gc_reports_a_refused_write_and_leaves_everything_needed(old: tuple[Disk, list[str]], number: int) -> None:
    disk, batches = old
    for left in refused_at_each_write(disk, _collect, number, least=5):
        store = open_store(RealFiles(left.calls()), PLACE)
        for batch_id in batches[1:]:
            _check_readable(store, batch_id)


@pytest.mark.parametrize(
    ("call", "staying", "unremoved"),
    [("rename", [0, 2], "batch-"), ("remove_tree", [2], "batches/.batch-")],
    ids=["batch stays", "hidden files stay"],
)
def test_gc_names_data_whose_permissions_refuse_the_removal_and_collects_the_rest(
    old: tuple[Disk, list[str]], call: str, staying: list[int], unremoved: str
) -> None:
    """The oldest batch belongs to another user of the group. If it stays, everything that it needs stays too."""
    disk, batches = copy.deepcopy(old)

    def refuse(operation: Operation) -> Fate | None:
        is_refused = operation.call == call and batches[0] in operation.path.name
        return Fate(PermissionError(errno.EACCES, "Permission denied")) if is_refused else None

    store = open_store(RealFiles(WatchedCalls(disk.calls(), refuse)), PLACE)
    collected = collect_garbage(store, keep=1)
    assert batch_ids(store) == [batches[number] for number in staying]
    assert list(collected.batches) == [id_ for number, id_ in enumerate(batches) if number not in staying]
    (refused,) = collected.unremoved
    assert refused.name.startswith(f"{unremoved}{batches[0].removeprefix('batch-')}")
    assert refused.reason == "Permission denied"
    for batch_id in batch_ids(store):
        _check_readable(store, batch_id)


def test_run_reports_that_it_may_not_collect_only_if_there_is_something_to_collect(
    old: tuple[Disk, list[str]],
) -> None:
    disk, batches = copy.deepcopy(old)

    def refuse(operation: Operation) -> Fate | None:
        is_lock = operation.path == PLACE / "locks" / "store"
        return Fate(PermissionError(errno.EACCES, "Permission denied")) if is_lock else None

    store = open_store(RealFiles(WatchedCalls(disk.calls(), refuse)), PLACE)
    ran = open_batch(store, batches[2])
    notes: list[str] = []
    for keep in (3, 1):
        assert collect_garbage_after_run(store, keep=keep, ran=ran, note=notes.append) is None
    assert notes == [f"old batches were not removed: cannot write {PLACE}/locks/store: Permission denied"]
    assert batch_ids(store) == batches


def test_run_reports_other_writers_only_if_old_batches_accumulate(old: tuple[Disk, list[str]]) -> None:
    disk, batches = copy.deepcopy(old)
    store = open_store(RealFiles(disk.calls()), PLACE)
    ran = open_batch(store, batches[2])
    notes: list[str] = []
    with store.writing():
        for keep in (2, 1):
            assert collect_garbage_after_run(store, keep=keep, ran=ran, note=notes.append) is None
    assert notes == [f"old batches were not removed: another process is writing to {PLACE}"]


def test_old_pack_is_removed_only_after_the_new_pack_is_durable(old: tuple[Disk, list[str]]) -> None:
    """The collector is killed when it removes the old pack, and power is lost: the disk may keep either name."""
    disk, batches = copy.deepcopy(old)

    def die(operation: Operation) -> Fate | None:
        is_it = operation.call == "unlink" and operation.path.suffix == ".pack"
        return Fate(Killed(), share=1) if is_it else None

    with pytest.raises(Killed):
        _collect(RealFiles(WatchedCalls(disk.calls(), die)))
    for seed in range(40):
        left = copy.deepcopy(disk)
        left.lose_power(random.Random(seed))
        store = open_store(RealFiles(left.calls()), PLACE)
        for batch_id in batches[1:]:
            _check_readable(store, batch_id)


# -- Hostile stores, pins ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["batches/batch-20200101-000000-000000-abcdef", "snapshots/snap-0123456789abcdef"])
def test_gc_does_not_follow_a_link_in_place_of_a_batch_or_snapshot(store: StoreDir, tmp_path: Path, where: str) -> None:
    precious = write(tmp_path / "outside" / "precious", "x")
    (store.root / where).symlink_to(tmp_path / "outside")
    make_merged(store, [b"a"], second=1)
    make_merged(store, [b"b"], second=2)
    notes: list[str] = []
    collect_all(store, keep=1, notes=notes)
    assert precious.exists()
    assert (store.root / where).is_symlink()
    assert any(Path(where).name in line for line in notes)


@pytest.mark.parametrize("part", ["objects", "snapshots", "batches", "pins", "cache"])
def test_gc_rejects_a_link_in_place_of_a_store_directory(store: StoreDir, tmp_path: Path, part: str) -> None:
    make_merged(store, [b"a"])
    (store.root / part).rename(tmp_path / "outside")
    (store.root / part).symlink_to(tmp_path / "outside")
    before = sorted((tmp_path / "outside").rglob("*"))
    with pytest.raises(StoreUntrusted):
        collect_all(store, keep=1)
    assert sorted((tmp_path / "outside").rglob("*")) == before


def test_gc_ignores_files_with_unknown_names(store: StoreDir) -> None:
    make_merged(store, [b"a"])
    planted = [
        write(store.root / part / name / "file", "x")
        for part in ("batches", "snapshots", "pins", "cache")
        for name in ("notes", "batch-1", "snap-xyz", "stat-1.bin", "a b")
    ]
    collect_all(store, keep=1)
    assert [path for path in planted if not path.exists()] == []


def test_pin_requires_an_existing_id_and_unpin_a_pinned_id(store: StoreDir) -> None:
    batch = make_merged(store, [b"a"])
    for wrong in ("nothing", "snap-0000", batch.id[:-1] + "x"):
        with pytest.raises(UnknownId):
            pin_reference(store, wrong)
    with pytest.raises(UnknownId, match="is not pinned"):
        unpin_reference(store, batch.id)
    assert pin_reference(store, "latest") == pin_reference(store, batch.id) == batch.id
    assert pin_reference(store, batch.about.snapshot_id.removeprefix("snap-")) == batch.about.snapshot_id
    assert pinned_ids(store) == sorted([batch.id, batch.about.snapshot_id])
    store.files.remove_tree(batch.root)
    collect_all(store, keep=1)
    assert unpin_reference(store, batch.id) == batch.id
    assert pinned_ids(store) == [batch.about.snapshot_id]


def test_pin_survives_power_loss(old: tuple[Disk, list[str]]) -> None:
    disk, batches = copy.deepcopy(old)
    pin_reference(open_store(RealFiles(disk.calls()), PLACE), batches[0])
    disk.lose_power()
    assert pinned_ids(open_store(RealFiles(disk.calls()), PLACE)) == batches[:1]


def test_store_stats_count_hard_linked_files_once(store: StoreDir) -> None:
    one = write(store.root / "batches" / "b" / "outputs" / "x", "12345")
    (store.root / "batches" / "c" / "outputs").mkdir(parents=True)
    before = read_store_stats(store)
    os.link(one, store.root / "batches" / "c" / "outputs" / "x")
    after = read_store_stats(store)
    assert after.bytes == before.bytes
    assert (before.shared_bytes, after.shared_bytes) == (0, 5)
    assert after.parts["batches/outputs"] == (1, 5)
