"""Tests of files that change during their read: no mixed content is stored, and no file behind a link is read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from codebatch.model.digest import Digest
from codebatch.snapshotting import snapshot
from codebatch.snapshotting.capture import STREAMED_BYTES_MIN, capture_entry
from codebatch.snapshotting.directories import DirectoryDescriptors
from codebatch.snapshotting.selection import SourceRules
from codebatch.snapshotting.snapshot import take_snapshot
from codebatch.snapshotting.stat_cache import StatCache, file_stat, make_stamp
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.system.files.files import RealFiles
from codebatch.system.files.system_calls import RealCalls
from tests.support.calls import Operation, WatchedCalls

from .conftest import Workbench


def _edit_in_place(path: Path) -> None:
    path.write_bytes(b"b" * path.stat().st_size)


def _edit_and_set_the_time_back(path: Path) -> None:
    """Only the ctime reveals the edit."""
    before = path.stat()
    _edit_in_place(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("edit", [_edit_in_place, _edit_and_set_the_time_back])
@pytest.mark.parametrize("size", [10, STREAMED_BYTES_MIN + 1])
def test_file_edited_during_its_read_is_read_again(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, edit: Callable[[Path], None], size: int
) -> None:
    target = bench.write("a.bin", b"a" * size)
    bench.settle()
    edits = iter([edit])
    real_read = os.read

    def read(fd: int, count: int) -> bytes:
        data = real_read(fd, count)
        if os.path.samestat(os.fstat(fd), target.stat()) and (once := next(edits, None)):
            once(target)
        return data

    monkeypatch.setattr(os, "read", read)
    assert bench.load(bench.take()).read(b"a.bin") == b"b" * size


def test_file_replaced_by_a_link_is_captured_as_a_link(bench: Workbench) -> None:
    secret = bench.source.parent / "secret"
    secret.write_bytes(b"secret")
    target = bench.write("a.py", b"listed")
    listed_stat = file_stat(os.lstat(target))
    target.unlink()
    target.symlink_to(secret)
    objects = bench.objects()
    with DirectoryDescriptors(os.fsencode(bench.source)) as directories, PackWriter(objects) as writer:
        row = capture_entry(directories, b"a.py", listed_stat, writer)
    assert objects.read(Digest(row.key.hex())) == os.fsencode(secret)


def test_stamp_is_created_before_the_tree_is_read(bench: Workbench) -> None:
    bench.write("a.py")
    happened: list[str] = []

    def watch(operation: Operation) -> None:
        if ".stamp." in operation.path.name and operation.call == "create":
            happened.append("stamp")

    files = RealFiles(WatchedCalls(RealCalls(), watch))
    take_snapshot(
        files,
        bench.store,
        [bench.source],
        SourceRules(),
        now=lambda: 0.0,
        report=lambda _: happened.append("read"),
    )
    assert happened == ["stamp", *["read"] * (len(happened) - 1)]
    assert "read" in happened


def test_a_file_as_old_as_the_stamp_is_racy(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock has a resolution: a file written in the same tick as the stamp may be written again in that tick."""
    target = bench.write("a.py")
    monkeypatch.setattr(snapshot, "make_stamp", lambda *_: os.lstat(target).st_ctime_ns)
    bench.take()
    second = bench.take()
    assert (second.reused, second.read_files) == (False, 1)


def test_cache_row_as_old_as_the_stamp_is_ignored(bench: Workbench) -> None:
    target = bench.write("a.py")
    bench.settle()
    bench.take()
    (path,) = (bench.store / "cache").glob("stat-*.bin")
    cache = msgspec.msgpack.decode(path.read_bytes()[12:], type=StatCache)
    assert [*cache.safe_rows()] == [b"a.py"]
    assert not msgspec.structs.replace(cache, stamp_ns=os.lstat(target).st_ctime_ns).safe_rows()


def test_tree_on_another_device_has_an_earlier_stamp(bench: Workbench) -> None:
    """Its clock may be ahead of the store's, so only files that are some seconds older are trusted."""
    device = os.stat(bench.source.parent).st_dev
    other_base = next((base for base in (b"/dev/shm", b"/proc", b"/sys") if os.stat(base).st_dev != device), None)
    assert other_base is not None
    probe = bench.source.parent / "cache" / "stat.bin"
    store_stamp = make_stamp(bench.files, probe, os.fsencode(bench.source))
    other_stamp = make_stamp(bench.files, probe, other_base)
    assert store_stamp - other_stamp > 1_000_000_000


@pytest.mark.parametrize("is_repository", [True, False])
def test_link_in_place_of_a_directory_of_directories_is_detected(bench: Workbench, is_repository: bool) -> None:
    """The files behind the link keep their inodes and times."""
    bench.write("sub/deep/a.py")
    bench.write("b.py")
    if is_repository:
        bench.commit()
        bench.write(".gitignore", "/sub\n")
    bench.settle()
    before = bench.take()
    assert bench.take().reused
    (bench.source / "sub").rename(bench.source.parent / "moved")
    (bench.source / "sub").symlink_to(bench.source.parent / "moved")
    after = bench.take()
    assert after.snapshot_id != before.snapshot_id
    assert [entry.path for entry in bench.load(after).entries if entry.kind == "file"] != [
        entry.path for entry in bench.load(before).entries
    ]
