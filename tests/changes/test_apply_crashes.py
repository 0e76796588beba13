"""`apply` on a simulated disk: killed or refused at each call, and after a power loss."""

from __future__ import annotations

import copy
import errno
import os
import random
import stat
from pathlib import Path

import pytest

from codebatch.errors import InternalError, StoreInUse, StoreUnwritable
from codebatch.model.nearest_directories import directories_above
from codebatch.operations.changes.apply import apply_writes
from codebatch.operations.changes.checks import FileOutcome
from codebatch.system.files.system_calls import SystemCalls
from tests.changes.simulated_tree import SimulatedTreeCalls
from tests.changes.trees import TreeFile, states, tree_contents, tree_writes
from tests.support.calls import Fate, Operation, Watch, WatchedCalls
from tests.support.crashes import killed_from, refused, refused_from
from tests.support.disk import Disk
from tests.support.schedule import Killed

ROOT = Path("/home/project")
BEFORE = {
    b"a.py": TreeFile(b"a\n"),
    b"d/b.py": TreeFile(b"b\n"),
    b"d/c.py": TreeFile(b"c\n"),
    b"d/e/kept.py": TreeFile(b"kept\n"),
    b"d/latest": TreeFile(b"b.py", kind="link"),
    b"d/unused": TreeFile(b"../a.py", kind="link"),
    b"old/f/1.py": TreeFile(b"one\n"),
    b"swap": TreeFile(b"file\n"),
}
AFTER = {
    b"a.py": TreeFile(b"a new\n"),
    b"d/b.py": TreeFile(b"b new\n"),
    b"d/e/kept.py": TreeFile(b"kept\n"),
    b"d/e/new.py": TreeFile(b"created\n"),
    b"d/latest": TreeFile(b"e/new.py", kind="link"),
    b"e": TreeFile(b"d/e", kind="link"),
    b"new/f/g/2.py": TreeFile(b"two\n"),
    b"old": TreeFile(b"file now\n"),
    b"swap/h/3.py": TreeFile(b"three\n"),
    b"swap/h/link": TreeFile(b"3.py", kind="link"),
}
CALLS_MAX = 500
_CONTENT_WRITES = 18
"""The number of calls that write new contents or make directories for them, before the first file is replaced."""


def make_disk(tree: dict[bytes, TreeFile] = BEFORE) -> Disk:
    disk = Disk()
    calls = disk.calls()
    for directory in (ROOT.parent, ROOT, *(ROOT / os.fsdecode(path) for path in sorted(directories_above(tree)))):
        calls.mkdir(directory)
    for path, file in tree.items():
        if file.kind == "link":
            calls.symlink(os.fsdecode(file.content), ROOT / os.fsdecode(path))
            continue
        fd = calls.open(ROOT / os.fsdecode(path), os.O_CREAT | os.O_WRONLY)
        calls.write(fd, file.content)
    calls.exit()
    disk.sync()
    return disk


def disk_files(disk: Disk, directory: Path = ROOT) -> dict[bytes, bytes]:
    """Return the content of each file of the project."""
    calls = disk.calls()
    found: dict[bytes, bytes] = {}
    for name in calls.listing(directory):
        path = directory / name
        if stat.S_ISDIR(calls.stat(path).st_mode):
            found |= disk_files(disk, path)
        elif stat.S_ISLNK(calls.stat(path).st_mode):
            found[os.fsencode(path.relative_to(ROOT))] = disk.read_link(path)
        else:
            fd = calls.open(path, os.O_RDONLY)
            found[os.fsencode(path.relative_to(ROOT))] = calls.pread(fd, 1 << 20, 0)
    return found


def disk_directories(disk: Disk, directory: Path = ROOT) -> set[bytes]:
    """Return the directories of the project."""
    calls = disk.calls()
    below = [directory / name for name in calls.listing(directory)]
    below = [path for path in below if stat.S_ISDIR(calls.stat(path).st_mode)]
    return {os.fsencode(path.relative_to(ROOT)) for path in below}.union(
        *(disk_directories(disk, path) for path in below)
    )


def contents_of(tree: dict[bytes, TreeFile]) -> dict[bytes, bytes]:
    return {path: file.content for path, file in tree.items()}


def watched(disk: Disk, calls: SystemCalls, watch: Watch) -> SimulatedTreeCalls:
    """Return calls that a test watches. sync(2) is watched as an fsync of the root."""

    def sync() -> None:
        fate = watch(Operation("fsync", ROOT))
        if fate is not None:
            raise fate.error
        disk.sync()

    return SimulatedTreeCalls(disk, WatchedCalls(calls, watch), sync=sync)


def apply_to(disk: Disk, watch: Watch = lambda _: None, *, is_reversed: bool = False) -> list[FileOutcome]:
    """Apply the changes as a process that exits afterwards."""
    process = disk.calls()
    try:
        writes = tree_writes(BEFORE, AFTER, is_reversed=is_reversed)
        return apply_writes(watched(disk, process, watch), os.fsencode(ROOT), writes, tree_contents(BEFORE, AFTER))
    finally:
        process.exit()


def check_either_content(files: dict[bytes, bytes]) -> None:
    """Check that each file of the project has its old or its new content."""
    old, new = contents_of(BEFORE), contents_of(AFTER)
    for path in {*old, *new}:
        assert files.get(path) in (old.get(path), new.get(path)), path


@pytest.mark.parametrize("seed", [None, *range(8)])
@pytest.mark.parametrize("is_reversed", [False, True])
def test_apply_that_is_killed_at_any_write_is_completed_by_the_same_command(
    seed: int | None, is_reversed: bool
) -> None:
    old, new = (AFTER, BEFORE) if is_reversed else (BEFORE, AFTER)
    start = make_disk(old)
    for at in range(CALLS_MAX):
        disk = copy.deepcopy(start)
        is_over = True
        try:
            apply_to(disk, killed_from(at), is_reversed=is_reversed)
        except Killed:
            is_over = False
        if seed is not None:
            disk.lose_power(random.Random(seed + at) if seed else None)
        check_either_content(disk_files(disk))
        outcomes = apply_to(disk, is_reversed=is_reversed)
        assert {*states(outcomes).values()} <= {"written", "applied"}
        assert disk_files(disk) == contents_of(new)
        assert disk_directories(disk) == directories_above(new)
        if is_over:
            assert at > 10
            return
    raise InternalError("apply does not end")


def test_renames_follow_the_sync_of_all_new_contents() -> None:
    seen: list[str] = []

    def watch(operation: Operation) -> Fate | None:
        if operation.is_write:
            seen.append(operation.call)
        return None

    apply_to(make_disk(), watch)
    assert seen.count("fsync") == 1
    first = seen.index("fsync")
    assert {*seen[:first]} == {"create", "write", "symlink", "mkdir"}
    created = ["link", "unlink"]
    assert seen[first + 1 :] == [
        *["unlink"] * 4,
        *["remove_tree"] * 2,
        *["rename"] * 2,
        *created,  # d/e/new.py
        "rename",
        *created * 3,
        *["mkdir"] * 2,  # swap/h
        *created * 2,
    ]


def is_content_write(operation: Operation) -> bool:
    """Return whether a call stores a new content. sync(2) never fails."""
    return operation.call in ("create", "write", "symlink", "mkdir")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("at", range(_CONTENT_WRITES))
def test_full_disk_at_any_write_changes_no_file(number: int, at: int) -> None:
    disk = make_disk()
    with pytest.raises(StoreUnwritable, match="no file was changed"):
        apply_to(disk, refused_from(at, number, is_content_write))
    assert disk_files(disk) == contents_of(BEFORE)
    assert disk_directories(disk) == directories_above(BEFORE)
    is_last_write = refused_from(_CONTENT_WRITES, number, is_content_write)
    assert {path for path, state in states(apply_to(disk, is_last_write)).items() if state == "refused"} == {
        b"swap/h/3.py",
        b"swap/h/link",
    }
    assert disk_directories(disk) == directories_above(AFTER) - {b"swap", b"swap/h"}
    apply_to(disk)
    assert disk_files(disk) == contents_of(AFTER)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EPERM, errno.EROFS])
def test_refused_rename_is_reported_and_the_other_files_are_written(number: int) -> None:
    def watch(operation: Operation) -> Fate | None:
        return refused(number, operation) if operation.call == "rename" and operation.path.name == "b.py" else None

    disk = make_disk()
    outcomes = apply_to(disk, watch)
    changed = {path for path in {*BEFORE, *AFTER} if BEFORE.get(path) != AFTER.get(path)}
    assert states(outcomes) == {**dict.fromkeys(changed, "written"), b"d/b.py": "refused"}
    assert disk_files(disk) == contents_of(AFTER) | {b"d/b.py": b"b\n"}


def test_file_is_created_without_hard_links() -> None:
    def watch(operation: Operation) -> Fate | None:
        return refused(errno.EPERM, operation) if operation.call == "link" else None

    disk = make_disk()
    assert {*states(apply_to(disk, watch)).values()} == {"written"}
    assert disk_files(disk) == contents_of(AFTER)


def test_file_that_appears_is_not_replaced_without_hard_links() -> None:
    disk = make_disk()

    def watch(operation: Operation) -> Fate | None:
        if operation.call != "link" or operation.path.name != "new.py":
            return None
        calls = disk.calls()
        calls.write(calls.open(operation.path, os.O_CREAT | os.O_WRONLY), b"mine")
        return refused(errno.EPERM, operation)

    assert states(apply_to(disk, watch))[b"d/e/new.py"] == "refused"
    assert disk_files(disk) == contents_of(AFTER) | {b"d/e/new.py": b"mine"}


def test_second_apply_of_a_tree_is_refused_while_one_runs() -> None:
    disk = make_disk()
    process = disk.calls()
    first = SimulatedTreeCalls(disk, process)
    assert first.try_lock(first.open_root(os.fsencode(ROOT)))
    with pytest.raises(StoreInUse, match="another `codebatch apply`"):
        apply_to(disk)
    assert disk_files(disk) == contents_of(BEFORE)


def test_temporary_files_are_only_removed_if_their_name_is_one_of_apply() -> None:
    disk = make_disk()
    calls = disk.calls()
    kept = [".codebatch-1.tmp", f".codebatch-{'0' * 32}.tmp.py", "x.tmp"]
    for name in (*kept, f".codebatch-{'0' * 32}.tmp"):
        calls.open(ROOT / "d" / name, os.O_CREAT | os.O_WRONLY)
    calls.exit()
    apply_to(disk)
    assert disk_files(disk) == contents_of(AFTER) | {b"d/" + name.encode(): b"" for name in kept}
