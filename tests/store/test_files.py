"""Tests of file access: a refused call leaves files unchanged and is reported."""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from codebatch.errors import StoreCorrupt, StoreError, StoreUntrusted, StoreUnwritable
from codebatch.model.digest import Digest
from codebatch.model.documents import encode_document
from codebatch.store.batches.batch_directory import open_batch
from codebatch.store.batches.store_directory import create_store
from codebatch.system.files.disk_usage import iter_files
from codebatch.system.files.files import RealFiles
from codebatch.system.files.system_calls import RealCalls
from tests.support.batches import make_batch
from tests.support.calls import Fate, Operation, WatchedCalls


def test_append_after_a_refused_append_overwrites_its_partial_bytes(tmp_path: Path) -> None:
    fates = iter([None, Fate(OSError(errno.ENOSPC, "No space left on device"), share=0.5), None])
    calls = WatchedCalls(RealCalls(), lambda operation: next(fates) if operation.call == "write" else None)
    files = RealFiles(calls)
    path = tmp_path / "segment"
    appender = files.open_append(path)
    appender.append(b"first")
    with pytest.raises(StoreUnwritable):
        appender.append(b"refused")
    offset = appender.append(b"second")
    appender.close()
    assert files.read_range(path, offset, 6) == b"second"
    assert path.read_bytes() == b"firstsecond"


def test_store_creation_rejects_a_file_system_without_hard_links(tmp_path: Path) -> None:
    def watch(operation: Operation) -> Fate | None:
        return Fate(OSError(errno.EPERM, "Operation not permitted")) if operation.call == "link" else None

    with pytest.raises(StoreError, match="hard links"):
        create_store(RealFiles(WatchedCalls(RealCalls(), watch)), tmp_path / "store")
    assert not (tmp_path / "store" / "store.json").exists()


def test_exclusive_create_recognises_its_own_link_after_a_lost_reply(tmp_path: Path) -> None:
    """NFS repeats the call and reports that the link exists. Its inode shows that we created it."""
    (tmp_path / "source").write_bytes(b"x")
    (tmp_path / "taken").write_bytes(b"y")
    lost = Fate(FileExistsError(errno.EEXIST, "File exists"), share=1.0)
    files = RealFiles(
        WatchedCalls(RealCalls(), lambda call: lost if call.call == "link" and call.path.name == "ours" else None)
    )
    assert files.create_exclusive(tmp_path / "source", tmp_path / "ours")
    assert not files.create_exclusive(tmp_path / "source", tmp_path / "taken")


def test_plan_of_another_batch_is_rejected(tmp_path: Path) -> None:
    store, _ = create_store(RealFiles(), tmp_path / "store")
    first, second = (make_batch(store, [path], shard_items=1) for path in (b"a", b"b"))
    (first.root / "plan.json").write_bytes((second.root / "plan.json").read_bytes())
    with pytest.raises(StoreCorrupt, match="belongs to another batch"):
        first.plan()
    assert second.plan().item_count == 1


def test_batch_with_paths_but_without_a_source_is_damaged(tmp_path: Path) -> None:
    store, _ = create_store(RealFiles(), tmp_path / "store")
    batch = make_batch(store, [b"a"], shard_items=1)
    (batch.root / "batch.json").write_bytes(encode_document(replace(batch.about, sources=(), paths=(b"a",))))
    with pytest.raises(StoreCorrupt, match="paths without a source"):
        open_batch(store, batch.id)


@pytest.mark.parametrize("imports", [{"../../x": "0" * 64}, {"x": "../../x"}, {"x": "0" * 64 + "\n"}])
def test_batch_with_invalid_names_of_imports_is_damaged(tmp_path: Path, imports: dict[str, Digest]) -> None:
    store, _ = create_store(RealFiles(), tmp_path / "store")
    batch = make_batch(store, [b"a"], shard_items=1)
    (batch.root / "batch.json").write_bytes(encode_document(replace(batch.about, imports=imports)))
    with pytest.raises(StoreCorrupt, match="imports is invalid"):
        open_batch(store, batch.id)


class _WithoutLocks(RealCalls):
    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def flock(self, fd: int, operation: int) -> None:  # type: ignore[override]
        raise OSError(self._number, os.strerror(self._number))


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL])
def test_file_system_without_locks_is_reported(tmp_path: Path, number: int) -> None:
    """NFS without lockd and Lustre without `-o flock` refuse locks."""
    store, _ = create_store(RealFiles(), tmp_path / "store")
    files = RealFiles(_WithoutLocks(number))
    before = len(os.listdir("/proc/self/fd"))
    for ask in (files.try_lock, lambda path: files.wait_lock(path, shared=True), files.is_locked):
        with pytest.raises(StoreError, match="cannot lock files"):
            ask(store.root / "store.json")
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS, errno.ENOTSUP])
def test_file_system_that_cannot_sync_is_reported_as_unwritable(tmp_path: Path, number: int) -> None:
    refused = Fate(OSError(number, os.strerror(number)))
    calls = WatchedCalls(RealCalls(), lambda operation: refused if operation.call == "fsync" else None)
    with pytest.raises(StoreUnwritable, match="cannot write"):
        create_store(RealFiles(calls), tmp_path / "store")


def test_iter_files_skips_unreadable_paths(tmp_path: Path) -> None:
    """A path that is too long for the system represents any unreadable path."""
    (tmp_path / "a").write_bytes(b"xx")
    (tmp_path / "z").write_bytes(b"x")
    depth = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=depth)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=depth)
        os.close(depth)
        depth = below
    os.close(depth)
    assert [status.st_size for _, status in iter_files(tmp_path)] == [2, 1]


def test_open_directory_handle_rejects_links_and_detects_removal(
    tmp_path: Path,
) -> None:
    files, directory = RealFiles(), tmp_path / "kept"
    files.confine(tmp_path)
    directory.mkdir()
    (directory / "a").write_bytes(b"one")
    (directory / "link").symlink_to("a")
    with files.keeping_open(directory):
        assert files.read_range(f"{directory}/a", 0, 10) == files.read_range(directory / "a", 0, 10) == b"one"
        with pytest.raises(StoreUntrusted):
            files.read_range(f"{directory}/link", 0, 10)
        with pytest.raises(StoreUntrusted):
            files.read_range(f"{directory}/../../elsewhere", 0, 10)
        files.sync_directory(directory)
        shutil.rmtree(directory)
        directory.mkdir()
        (directory / "a").write_bytes(b"two")
        with pytest.raises(FileNotFoundError):
            files.read_range(f"{directory}/a", 0, 10)
        assert files.read_range(f"{directory}/a", 0, 10) == b"two"


def test_open_directory_handle_lists_a_replaced_directory(tmp_path: Path) -> None:
    files, directory = RealFiles(), tmp_path / "kept"
    files.confine(tmp_path)
    directory.mkdir()
    with files.keeping_open(directory, tmp_path / "missing"):
        assert files.listing(directory) == {}
        directory.rmdir()
        directory.mkdir()
        (directory / "a").write_bytes(b"one")
        assert (list(files.listing(directory)), files.lengths(directory)) == (["a"], {"a": 3})


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_sync_error_of_an_open_directory_handle_is_reported_once(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, directory = RealFiles(), tmp_path / "kept"
    files.confine(tmp_path)
    directory.mkdir()
    refused = [OSError(number, os.strerror(number))]

    def fsync(_descriptor: int) -> None:
        if refused:
            raise refused.pop()

    with files.keeping_open(directory):
        monkeypatch.setattr(os, "fsync", fsync)
        with pytest.raises(StoreError):
            files.sync_directory(directory)


class _Disk:
    """A simulated disk that needs a fixed time for each file. It records the threads that wrote."""

    def __init__(self, seconds: float, monkeypatch: pytest.MonkeyPatch, full_at: str = "") -> None:
        self._seconds = seconds
        self._full_at = full_at
        self._now = 0.0
        self.writers: set[int] = set()
        monkeypatch.setattr(RealCalls, "fsync", staticmethod(self._fsync))
        monkeypatch.setattr("codebatch.system.files.files.time.perf_counter", lambda: self._now)

    def _fsync(self, descriptor: int) -> None:
        time.sleep(self._seconds)
        self._now += self._seconds
        self.writers.add(threading.get_ident())
        if self._full_at and os.readlink(f"/proc/self/fd/{descriptor}").endswith(self._full_at):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("seconds", [0, 0.003])
def test_write_many_uses_several_threads_on_a_slow_disk(
    seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = _Disk(seconds, monkeypatch)
    RealFiles().write_many((tmp_path / f"{number}", b"%d" % number) for number in range(80))
    assert {int(path.name): path.read_bytes() for path in tmp_path.iterdir()} == {n: b"%d" % n for n in range(80)}
    assert (len(disk.writers) > 1) is (seconds > 0)


@pytest.fixture
def _no_threads() -> Iterator[None]:
    before = threading.stack_size(1 << 47)  # Larger than the address space, so the system refuses to start a thread.
    yield
    threading.stack_size(before)


@pytest.mark.usefixtures("_no_threads")
def test_many_files_are_written_if_no_thread_can_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = _Disk(0.003, monkeypatch)
    RealFiles().write_many((tmp_path / f"{number}", b"x") for number in range(80))
    assert len(list(tmp_path.iterdir())) == 80
    assert disk.writers == {threading.get_ident()}


@pytest.mark.parametrize("seconds", [0, 0.003])
def test_write_many_reports_a_full_disk_from_any_thread(
    seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _Disk(seconds, monkeypatch, full_at="/50")
    with pytest.raises(StoreUnwritable):
        RealFiles().write_many((tmp_path / f"{number}", b"x") for number in range(80))
