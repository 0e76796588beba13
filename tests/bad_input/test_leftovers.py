"""Leftovers of killed processes are removed by the next writer. Files that a live process holds remain."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch.model.outcome import HolderId
from codebatch.store.batches.holders import HolderFile, HolderRegistration, LeaseReader, new_holder_id
from codebatch.store.batches.leftovers import BatchLeftovers
from codebatch.store.batches.store_directory import StoreDir, create_store
from codebatch.system.files.files import RealFiles
from codebatch.system.files.system_calls import RealCalls
from codebatch.system.host import this_host
from tests.support.calls import Fate, Operation, WatchedCalls
from tests.support.command_line import CommandLine, make_many, wait_until, write

TMP = f".{'ab' * 16}.tmp"
DIRECTORIES = ("", "locks", "objects", "snapshots", "batches", "indexes", "indexes/terms", "cache")


def find_leftovers(store: Path) -> list[str]:
    """Return all temporary files and all working directories of a store."""
    unfinished = [path for path in store.rglob("*") if path.name.endswith((".tmp", ".part"))]
    return sorted(str(path.relative_to(store)) for path in [*unfinished, *store.glob("batches/batch-*/scratch/*")])


@pytest.fixture
def store(tmp_path: Path) -> StoreDir:
    return create_store(RealFiles(), tmp_path / "store")[0]


def plant(store: StoreDir) -> list[Path]:
    """Create a temporary file and a directory with contents in each place that may have them."""
    planted = []
    for name in DIRECTORIES:
        write(store.root / name / TMP / "deep" / "file", "x")
        write(store.root / name / f".name.{TMP[1:]}", "x")
        planted += [store.root / name / TMP, store.root / name / f".name.{TMP[1:]}"]
    write(store.root / "objects" / f"{'cd' * 16}.part", "x")
    return [*planted, store.root / "objects" / f"{'cd' * 16}.part"]


def test_exclusive_writer_removes_leftovers(store: StoreDir) -> None:
    planted = plant(store)
    write(store.root / "snapshots" / ".DS_Store", "not ours")
    with store.writing():
        assert not [path for path in planted if path.exists()]
    assert (store.root / "snapshots" / ".DS_Store").exists()


def test_leftover_directory_is_removed_if_unlink_returns_eperm(tmp_path: Path) -> None:
    """macOS returns EPERM instead of EISDIR."""

    def watch(operation: Operation) -> Fate | None:
        refused = operation.call == "unlink" and operation.path.is_dir()
        return Fate(PermissionError(errno.EPERM, "Operation not permitted")) if refused else None

    store = create_store(RealFiles(WatchedCalls(RealCalls(), watch)), tmp_path / "store")[0]
    planted = plant(store)
    with store.writing():
        assert not [path for path in planted if path.exists()]


def test_concurrent_writer_removes_only_unlocked_parts(store: StoreDir) -> None:
    with store.writing():
        planted = plant(store)
        lock = RealFiles().try_lock(planted[-1])
        assert lock is not None
        with store.writing():
            assert [path for path in planted if path.exists()] == planted
        lock.release()
        with store.writing():
            assert [path for path in planted if path.exists()] == planted[:-1]
        with store.writing():
            pass
    with store.writing():
        assert not [path for path in planted if path.exists()]


def test_writers_share_the_store_after_the_sweep(store: StoreDir) -> None:
    with store.writing(), store.writing(), store.writing():
        assert RealFiles().try_lock(store.root / "locks" / "store") is None
    lock = RealFiles().try_lock(store.root / "locks" / "store")
    assert lock is not None
    lock.release()


def test_link_in_place_of_a_leftover_is_removed_and_not_followed(store: StoreDir, tmp_path: Path) -> None:
    write(tmp_path / "outside" / "precious", "x")
    (store.root / "batches" / TMP).symlink_to(tmp_path / "outside")
    with store.writing():
        assert not os.path.lexists(store.root / "batches" / TMP)
    assert (tmp_path / "outside" / "precious").exists()


def _register_holder(root: Path, role: str) -> HolderRegistration:
    assert role in ("worker", "coordinator")
    about = HolderFile(
        holder=new_holder_id(),
        role="worker" if role == "worker" else "coordinator",
        pid=os.getpid(),
        host=this_host(),
        since_ns=1,
    )
    return HolderRegistration(RealFiles(), root, about)


def _plant_batch(root: Path, holder: str) -> list[Path]:
    write(root / "scratch" / holder / "file", "x")
    write(root / "outcomes" / f".{holder}.17.tmp", "x")
    write(root / "holders" / f".{holder}.{TMP[1:]}", "x")
    return [
        root / "scratch" / holder,
        root / "outcomes" / f".{holder}.17.tmp",
        root / "holders" / f".{holder}.{TMP[1:]}",
    ]


def _sweep(root: Path, own: HolderId) -> None:
    left = BatchLeftovers(RealFiles(), root)
    left.remove_orphaned(LeaseReader(RealFiles(), root).read_holders(), own)


def test_sweep_removes_leftovers_of_dead_holders_only(tmp_path: Path) -> None:
    own, dead, live = (
        _register_holder(tmp_path, "coordinator"),
        _register_holder(tmp_path, "worker"),
        _register_holder(tmp_path, "worker"),
    )
    dead.close()
    of_dead, of_live = _plant_batch(tmp_path, dead.id), _plant_batch(tmp_path, live.id)
    of_unborn = _plant_batch(tmp_path, "ef" * 16)
    write(tmp_path / "outputs" / TMP / "lint.jsonl.zst", "x")
    other = _register_holder(tmp_path, "coordinator")
    _sweep(tmp_path, own.id)
    assert not [path for path in of_dead if path.exists()]
    assert [path for path in of_live if path.exists()] == of_live
    assert of_unborn[0].exists(), "the other coordinator may be starting this worker"
    assert (tmp_path / "outputs" / TMP).exists(), "the other coordinator may be merging"
    other.close()
    _sweep(tmp_path, own.id)
    assert not of_unborn[0].exists()
    assert not (tmp_path / "outputs" / TMP).exists()
    assert [path for path in of_live if path.exists()] == of_live
    for holder in (own, live):
        holder.close()


class _ConcurrentlySweptFiles(RealFiles):
    """Files that another process sweeps at each step of a holder registration, a given number of times."""

    def __init__(self, root: Path, times: int) -> None:
        super().__init__()
        self.root, self.times = root, times

    def _sweep(self) -> None:
        if self.times:
            self.times -= 1
            left = BatchLeftovers(RealFiles(), self.root)
            left.remove_orphaned([], HolderId("0" * 32))

    def write_volatile(self, path: Path, data: bytes) -> None:
        super().write_volatile(path, data)
        self._sweep()


def test_holder_registration_survives_a_concurrent_sweep(tmp_path: Path) -> None:
    about = HolderFile(holder=new_holder_id(), role="worker", pid=1, host=this_host(), since_ns=1)
    holder = HolderRegistration(_ConcurrentlySweptFiles(tmp_path, 5), tmp_path, about)
    assert LeaseReader(RealFiles(), tmp_path).read_holders() == [(about, True)]
    assert os.listdir(tmp_path / "holders") == [about.holder]
    holder.close()


def _kill_when(codebatch: CommandLine, arguments: tuple[str, ...], condition: Callable[[], bool]) -> None:
    process = codebatch.start(*arguments)
    wait_until(lambda: condition() or process.poll() is not None, "a leftover is created")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "the process ended before it could be killed"


def test_leftovers_of_a_killed_snapshot_are_removed_by_the_next_snapshot(codebatch: CommandLine) -> None:
    tree, objects = codebatch.directory / "tree", codebatch.directory / ".codebatch" / "objects"
    tree.mkdir()
    for number in range(300):
        (tree / f"{number}.bin").write_bytes(os.urandom(100_000))
    parts: set[Path] = set()
    for _ in range(2):
        before, parts = parts, set()

        def is_new(before: set[Path] = before) -> bool:
            return bool({*objects.glob("*.part")} - before)

        _kill_when(codebatch, ("snapshot", "tree"), is_new)
        parts = {*objects.glob("*.part")}
        assert parts
        assert not parts & before
    snapshot = codebatch("snapshot", "tree", "--json").json
    assert snapshot["files"] == 300
    assert find_leftovers(codebatch.directory / ".codebatch") == []


def test_leftovers_of_a_killed_run_are_removed_by_the_next_run(codebatch: CommandLine, digest_of_many: str) -> None:
    make_many(codebatch.directory / "many", 40)
    store = codebatch.directory / ".codebatch"
    for count in (1, 2, 3):
        _kill_when(codebatch, ("run", "many", "-j", "2"), lambda: len([*store.glob("batches/batch-*/scratch/*")]) > 0)
        batch = min(store.glob("batches/batch-*"))
        write(batch / "outputs" / TMP / "lint.jsonl.zst", "as if it had been merging")
        write(batch / "scratch" / f"{count:032}" / "file", "as if its worker had been killed while Python started")
    assert find_leftovers(store)
    assert codebatch("run", "many", "--json").json["result_digest"] == digest_of_many
    assert find_leftovers(store) == []
