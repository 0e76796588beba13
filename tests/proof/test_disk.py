"""Comparison of the disk in memory with a real disk, call by call, and tests of power loss."""

from __future__ import annotations

import fcntl
import os
import random
import stat
from pathlib import Path

import pytest

from codebatch.system.files.system_calls import RealCalls, SystemCalls
from tests.support.disk import Disk

NAMES = ("a", "b", "directory")
HERE = Path("/here")


def _mounted() -> Disk:
    disk = Disk()
    disk.calls().mkdir(HERE)
    disk.sync()
    return disk


def _act(calls: SystemCalls, root: Path, chance: random.Random) -> object:
    """Make one random call or a short sequence of calls. Return its result, or its errno if it fails."""
    first, second = (root.joinpath(*chance.choices(NAMES, k=chance.randint(1, 2))) for _ in range(2))
    flags = chance.choice((os.O_RDONLY, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, os.O_WRONLY | os.O_CREAT | os.O_APPEND))
    data = bytes(chance.choices(b"abc", k=chance.randint(0, 5)))
    number = chance.randint(0, 7)
    try:
        match chance.randrange(12):
            case 0 | 1:
                fd = calls.open(first, flags)
                try:
                    if not flags & os.O_WRONLY:
                        return calls.pread(fd, number, number // 2)
                    written = calls.write(fd, data)
                    calls.ftruncate(fd, number)
                    calls.fsync(fd)
                    return written, calls.fstat(fd).st_size
                finally:
                    calls.close(fd)
            case 2:
                calls.mkdir(first)
            case 3 | 4:
                calls.link(first, second)
                return os.path.samestat(calls.stat(first), calls.stat(second))
            case 5 | 6:
                calls.rename(first, second)
            case 7:
                calls.unlink(first)
            case 8:
                calls.symlink(chance.choice(NAMES), first)
            case 9:
                calls.remove_tree(first)
            case 10:
                calls.close(calls.open(first, os.O_RDONLY | os.O_DIRECTORY))
                return stat.S_IFMT(calls.stat(first).st_mode)
            case _:
                return sorted(calls.listing(first))
    except OSError as error:
        return error.errno
    return None


def _tree(calls: SystemCalls, root: Path) -> dict[str, bytes | None]:
    content_by_path: dict[str, bytes | None] = {}
    for name in calls.listing(root):
        path = root / name
        kind = stat.S_IFMT(calls.stat(path).st_mode)
        if kind == stat.S_IFDIR:
            content_by_path |= {f"{name}/{below}": content for below, content in _tree(calls, path).items()}
            content_by_path[name] = None
        elif kind == stat.S_IFLNK:
            content_by_path[name] = b"a link"
        else:
            fd = calls.open(path, os.O_RDONLY)
            content_by_path[name] = calls.pread(fd, 1000, 0)
            calls.close(fd)
    return content_by_path


@pytest.mark.parametrize("block", range(4))
def test_simulated_disk_matches_the_real_file_system(tmp_path: Path, block: int) -> None:
    for seed in range(block * 25, block * 25 + 25):
        root = tmp_path / str(seed)
        root.mkdir()
        calls, system = _mounted().calls(), RealCalls()
        system.confine(root)
        chances = random.Random(seed), random.Random(seed)
        for _ in range(60):
            real, simulated = _act(system, root, chances[0]), _act(calls, HERE, chances[1])
            assert simulated == real
        assert _tree(calls, HERE) == _tree(system, root)


@pytest.mark.parametrize("calls_of", ["real", "simulated"])
def test_lock_is_held_until_its_file_is_closed(tmp_path: Path, calls_of: str) -> None:
    calls: SystemCalls = RealCalls() if calls_of == "real" else _mounted().calls()
    path = (tmp_path if calls_of == "real" else HERE) / "lock"
    first, second = (calls.open(path, os.O_RDWR | os.O_CREAT) for _ in range(2))
    calls.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
    for operation in (fcntl.LOCK_EX, fcntl.LOCK_SH):
        with pytest.raises(BlockingIOError):
            calls.flock(second, operation | fcntl.LOCK_NB)
    calls.close(first)
    calls.flock(second, fcntl.LOCK_SH | fcntl.LOCK_NB)
    calls.close(second)


def _write(calls: SystemCalls, path: Path, data: bytes, *, is_synced: bool) -> None:
    fd = calls.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    calls.write(fd, data)
    if is_synced:
        calls.fsync(fd)
    calls.close(fd)


def _sync_directory(calls: SystemCalls, path: Path) -> None:
    fd = calls.open(path, os.O_RDONLY)
    calls.fsync(fd)
    calls.close(fd)


def test_power_loss_discards_unsynced_names_and_bytes() -> None:
    disk = _mounted()
    calls = disk.calls()
    _write(calls, HERE / "bytes", b"synced", is_synced=True)
    _write(calls, HERE / "no-bytes", b"lost", is_synced=False)
    _sync_directory(calls, HERE)
    _write(calls, HERE / "bytes", b", lost", is_synced=False)
    _write(calls, HERE / "no-name", b"synced in vain", is_synced=True)
    calls.rename(HERE / "bytes", HERE / "renamed")
    disk.lose_power()
    assert _tree(disk.calls(), HERE) == {"bytes": b"synced", "no-bytes": b""}


def test_power_loss_may_retain_a_part_of_unsynced_data() -> None:
    left = set()
    for seed in range(60):
        disk = _mounted()
        calls = disk.calls()
        _write(calls, HERE / "a", b"synced", is_synced=True)
        _sync_directory(calls, HERE)
        _write(calls, HERE / "a", b"tail", is_synced=False)
        calls.rename(HERE / "a", HERE / "b")
        calls.mkdir(HERE / "c")
        disk.lose_power(random.Random(seed))
        tree = _tree(disk.calls(), HERE)
        assert ("a" in tree) != ("b" in tree), "the rename is not atomic"
        content = tree.get("a") or tree.get("b")
        assert content is not None
        assert content.startswith(b"synced")
        assert content[6:].rstrip(b"\0") == b"tail"[: len(content[6:].rstrip(b"\0"))]
        left.add((*sorted(tree), content))
    assert len(left) > 8


def test_disk_export_preserves_hard_links(tmp_path: Path) -> None:
    disk = _mounted()
    calls = disk.calls()
    calls.mkdir(HERE / "directory")
    _write(calls, HERE / "a", b"content", is_synced=False)
    calls.link(HERE / "a", HERE / "directory" / "b")
    disk.export(HERE, tmp_path / "out")
    assert os.path.samefile(tmp_path / "out" / "a", tmp_path / "out" / "directory" / "b")
    assert (tmp_path / "out" / "a").read_bytes() == b"content"
