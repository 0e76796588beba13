"""Tests of the stat cache: unchanged files are not read, and every change is noticed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch.errors import StoreUnwritable
from codebatch.snapshotting.snapshot import SourceRules, take_snapshot
from codebatch.snapshotting.staleness import changes_since, find_stat_cache
from codebatch.store.snapshots.snapshots import list_snapshots
from codebatch.system.files.files import RealFiles
from codebatch.system.files.system_calls import SHARED_MODE

from .conftest import Workbench


def _warm(bench: Workbench) -> None:
    bench.settle()
    bench.take()
    assert bench.take().reused


def _opened(bench: Workbench) -> list[str]:
    """Return the names that another process opens below the source during a snapshot, according to its audit events."""
    script = (
        "import os, sys, pathlib\n"
        "from codebatch.snapshotting.snapshot import SourceRules, take_snapshot\n"
        "from codebatch.system.files.files import RealFiles\n"
        "source, store = map(pathlib.Path, sys.argv[1:])\n"
        "names = set(os.listdir(source))\n"
        "opened = []\n"
        "def note(event, arguments):\n"
        "    if event == 'open' and isinstance(arguments[0], (str, bytes)):\n"
        "        name = os.fsdecode(arguments[0]).rpartition('/')[2]\n"
        "        opened.extend([name] * (name in names))\n"
        "sys.addaudithook(note)\n"
        "take_snapshot(RealFiles(), store, [source], SourceRules(), now=lambda: 0.0)\n"
        "print('\\n'.join(opened))\n"
    )
    arguments = [sys.executable, "-c", script, str(bench.source), str(bench.store)]
    return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize("is_repository", [True, False])
def test_unchanged_tree_opens_no_file(bench: Workbench, is_repository: bool) -> None:
    for number in range(20):
        bench.write(f"file{number}.py", str(number))
    if is_repository:
        bench.commit()
    bench.settle()
    first = bench.take()
    assert first.read_files == 20
    assert _opened(bench) == []
    second = bench.take()
    assert (second.read_files, second.reused, second.snapshot_id) == (0, True, first.snapshot_id)
    bench.write("file7.py", "other")
    assert _opened(bench) == ["file7.py"]


def test_only_changed_files_are_read(bench: Workbench) -> None:
    for number in range(10):
        bench.write(f"sub{number}/a.py", str(number))
    _warm(bench)
    bench.write("sub3/a.py", "changed")
    bench.write("new.py")
    (bench.source / "sub5/a.py").unlink()
    result = bench.take()
    assert result.read_files == 2
    assert result.files == 10
    assert bench.load(result).read(b"sub3/a.py") == b"changed"


def _edit_and_set_times_back(path: Path) -> None:
    before = path.stat()
    path.write_bytes(bytes(reversed(path.read_bytes())))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _replace_by_a_copy_with_the_same_times(path: Path) -> None:
    before = path.stat()
    copy = path.with_suffix(".tmp")
    copy.write_bytes(b"ba\n")
    os.utime(copy, ns=(before.st_atime_ns, before.st_mtime_ns))
    copy.rename(path)


def _make_executable(path: Path) -> None:
    path.chmod(0o755)


def _make_a_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("ab\n")


def _put_a_link_in_place_of_its_directory(path: Path) -> None:
    """The files behind the link keep their inodes and times."""
    moved = path.parent.parent.parent / "moved"
    path.parent.rename(moved)
    path.parent.symlink_to(moved)


def _make_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "x").write_text("x")


@pytest.mark.parametrize(
    "change",
    [
        _edit_and_set_times_back,
        _replace_by_a_copy_with_the_same_times,
        _make_executable,
        _make_a_link,
        _make_a_directory,
        _put_a_link_in_place_of_its_directory,
        Path.unlink,
    ],
)
@pytest.mark.parametrize("is_repository", [True, False])
def test_disguised_change_is_detected(bench: Workbench, change: Callable[[Path], None], is_repository: bool) -> None:
    bench.write("sub/a.py", "ab\n")
    bench.write("b.py")
    if is_repository:
        bench.commit()
        bench.write(".gitignore", "/sub\n")
    _warm(bench)
    before = bench.take().snapshot_id
    change(bench.source / "sub/a.py")
    cached = bench.take()
    assert cached.snapshot_id != before
    assert cached.snapshot_id == bench.take(rehash=True).snapshot_id


def test_file_written_within_a_tick_of_the_snapshot_is_read_again(bench: Workbench) -> None:
    """An edit of equal size immediately after the snapshot is noticed, whatever the resolution of the clock."""
    target = bench.write("a.py", "00000")
    for number in range(1, 60):
        bench.take()
        target.write_text(f"{number:05}")
        assert bench.load(bench.take()).read(b"a.py") == f"{number:05}".encode()


def test_rows_newer_than_the_snapshot_are_read_again(bench: Workbench) -> None:
    """A file with a future time stays racy: it is read each time, so an edit that lstat does not show is noticed."""
    target = bench.write("a.py", "one")
    future = 4_000_000_000_000_000_000
    os.utime(target, ns=(future, future))
    first = bench.take()
    second = bench.take()
    assert (first.read_files, second.read_files, second.reused) == (1, 1, False)


def test_rehash_reads_every_file(bench: Workbench) -> None:
    bench.write("a.py")
    bench.write("b.py")
    _warm(bench)
    assert bench.take(rehash=True).read_files == 2


def test_damaged_stat_cache_is_ignored(bench: Workbench) -> None:
    bench.write("a.py")
    _warm(bench)
    (cache,) = (bench.store / "cache").glob("stat-*.bin")
    sound = cache.read_bytes()
    for at in range(0, len(sound), 7):
        cache.write_bytes(sound[:at])
        assert bench.take().read_files == 1
        cache.write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
        assert bench.take().read_files == 1


def test_stat_cache_is_specific_to_source_and_rules(bench: Workbench) -> None:
    bench.write("a.py")
    bench.write("b.txt")
    _warm(bench)
    assert bench.paths(exclude=("*.txt",)) == [b"a.py"]
    assert bench.paths(include=("*.txt",)) == [b"b.txt"]
    assert bench.paths() == [b"a.py", b"b.txt"]


def test_cached_row_requires_its_object(bench: Workbench) -> None:
    bench.write("a.py")
    _warm(bench)
    for path in (bench.store / "objects").iterdir():
        path.unlink()
    result = bench.take()
    assert result.read_files == 1
    assert bench.load(result).read(b"a.py") == b"x\n"


class _RefusingFiles(RealFiles):
    """Files on a disk that refuses every write after the first `allowed` writes."""

    def __init__(self, allowed: int) -> None:
        super().__init__()
        self.left = allowed

    def _write_file(self, path: Path | str, data: bytes, *, sync: bool) -> None:
        self._spend()
        super()._write_file(path, data, sync=sync)

    def create_exclusive(self, source: Path | str, path: Path | str) -> bool:
        self._spend()
        return super().create_exclusive(source, path)

    def publish_directory(self, source: Path, path: Path) -> bool:
        self._spend()
        return super().publish_directory(source, path)

    def sync_directory(self, path: Path) -> None:
        self._spend()
        super().sync_directory(path)

    def make_directory(self, path: Path, mode: int = SHARED_MODE) -> bool:
        self._spend()
        return super().make_directory(path, mode)

    def _spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise StoreUnwritable("no space left")


def test_full_disk_at_any_write_publishes_nothing_partial(bench: Workbench) -> None:
    bench.write("a.py", "a")
    bench.write("b.py", "b")
    expected = take_snapshot(
        RealFiles(), bench.source.parent / "sound", [bench.source], SourceRules(), now=lambda: 0.0
    ).snapshot_id
    refused = 0
    for allowed in range(60):
        bench.store = bench.source.parent / f"store{allowed}"
        try:
            bench.files = _RefusingFiles(allowed)
            bench.take()
        except StoreUnwritable:
            refused += 1
        else:
            break
        finally:
            bench.files = RealFiles()
        for document in list_snapshots(bench.files, bench.store):
            snapshot = bench.load_id(document.snapshot_id)
            assert [snapshot.read(entry.path) for entry in snapshot.entries] == [b"a", b"b"]
        assert bench.take().snapshot_id == expected
    assert 8 < refused < 60


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="mounting needs root, and mount(8)")
def test_full_disk_is_reported_and_leaves_a_working_store(bench: Workbench) -> None:
    bench.store.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(bench.store)]
    mounted = subprocess.run(mount, check=False, capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("this system forbids mounting")
    try:
        bench.write("small.py", "x")
        first = bench.take()
        bench.write("big.bin", os.urandom(600_000))
        with pytest.raises(StoreUnwritable):
            bench.take()
        assert [item.snapshot_id for item in list_snapshots(bench.files, bench.store)] == [first.snapshot_id]
        assert not list((bench.store / "objects").glob("*.part"))
        (bench.source / "big.bin").unlink()
        assert bench.take().snapshot_id == first.snapshot_id
    finally:
        subprocess.run(["umount", "-l", bench.store], check=True)


def _changes(bench: Workbench, exclude: tuple[str, ...] = ()) -> Callable[[], tuple[bytes, ...]]:
    """Take a snapshot. Return a function that returns the paths changed since then."""
    bench.settle()
    snapshot_id = bench.take(exclude=exclude).snapshot_id
    name = find_stat_cache(bench.files, bench.store, snapshot_id, str(bench.source))

    def look() -> tuple[bytes, ...]:
        changes = changes_since(bench.files, bench.store, name, snapshot_id)
        assert changes is not None
        return changes.paths

    return look


def test_touched_rule_file_is_unchanged_and_still_applies(bench: Workbench) -> None:
    bench.write("a.py")
    rules = bench.write("sub/.codebatchignore", "left.py\n")
    bench.write("sub/b.py")
    look = _changes(bench)
    rules.write_text("left.py\n")
    bench.write("sub/left.py")
    assert look() == ()
    rules.write_text("none.py\n")
    assert look() == (b"sub/.codebatchignore", b"sub/left.py")


def test_touched_rule_file_without_a_row_is_changed(bench: Workbench) -> None:
    bench.write("a.py")
    rules = bench.write(".codebatchignore", "left.py\n")
    look = _changes(bench, exclude=(".codebatchignore",))
    assert look() == ()
    rules.write_text("left.py\n")
    assert look() == (b".codebatchignore",)
