"""Files that `apply` refuses, and the reasons. Nothing is written then."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch.errors import InvalidInput
from codebatch.model.change import ProposedChange, TreeChange
from codebatch.model.digest import digest_bytes
from codebatch.operations.changes.apply import apply_writes
from codebatch.operations.changes.checks import FileOutcome
from codebatch.operations.changes.file_writes import FileWrite, refuse_conflicts
from codebatch.store.reserved_names import has_reserved_name
from codebatch.system.files.tree_writer import RealTreeCalls
from tests.changes.simulated_tree import SimulatedTreeCalls
from tests.changes.trees import (
    MemoryContents,
    TreeFile,
    UnsyncedCalls,
    apply_tree,
    read_tree,
    reasons,
    states,
    write_tree,
)
from tests.support.disk import Disk

OLD, NEW = b"old\n", b"new\n"
CONTENTS = MemoryContents([OLD, NEW])
GOOD = b"good.py"


def edit(path: bytes) -> FileWrite:
    return FileWrite(path=path, task="t", before=digest_bytes(OLD), after=digest_bytes(NEW))


def creation(path: bytes) -> FileWrite:
    return FileWrite(path=path, task="t", before=None, after=digest_bytes(NEW), executable=False)


def apply_to(
    root: Path, *writes: FileWrite, is_partial: bool = False, calls: RealTreeCalls | None = None
) -> list[FileOutcome]:
    return apply_writes(calls or UnsyncedCalls(), os.fsencode(root), writes, CONTENTS, is_partial=is_partial)


def check_refused(root: Path, write: FileWrite, reason: str, calls: RealTreeCalls | None = None) -> None:
    """Check that a write is refused for a reason, that nothing is written then, and the rest with `is_partial`."""
    (root / "good.py").write_bytes(OLD)
    outcomes = apply_to(root, edit(GOOD), write, calls=calls)
    assert reason in reasons(outcomes)[write.path]
    assert states(outcomes)[GOOD] == "left_out"
    assert (root / "good.py").read_bytes() == OLD
    outcomes = apply_to(root, edit(GOOD), write, is_partial=True, calls=calls)
    assert states(outcomes) == {GOOD: "written", write.path: "refused"}
    assert (root / "good.py").read_bytes() == NEW
    assert not list(root.rglob(".codebatch-*"))


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (b"/etc/passwd", "leads out"),
        (b"", "leads out"),
        (b"../x", "leads out"),
        (b"d/../../x", "leads out"),
        (b"d//x", "leads out"),
        (b"./x", "leads out"),
        (b"x\0y", "leads out"),
        (b".git/hooks/pre-commit", "belongs to git"),
        (b".GIT/hooks/x", "belongs to git"),
        (b"d/.Git", "belongs to git"),
        (b".git ./x", "belongs to git"),
        (b".git::$INDEX_ALLOCATION/x", "belongs to git"),
        (b"GIT~1/x", "belongs to git"),
        (b".g\xe2\x80\x8cit/x", "belongs to git"),
        (b".codebatch/objects/x", "belongs to git"),
        (b".codebatch-" + b"0" * 32 + b".tmp", "belongs to git"),
        (b"x" * 256, "cannot be read"),
    ],
)
def test_path_is_refused(tmp_path: Path, path: bytes, reason: str) -> None:
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    for directory in (".git/hooks", ".GIT/hooks"):
        (root / directory).mkdir(parents=True, exist_ok=True)
    check_refused(root, creation(path), reason)
    check_refused(root, edit(path), reason)


@pytest.mark.parametrize("path", [b".gitignore", b".github/x", b"git", b"codebatch", b"x.git", b".codebatch.toml"])
def test_path_that_only_resembles_a_reserved_one_is_written(tmp_path: Path, path: bytes) -> None:
    assert not has_reserved_name(path)
    (tmp_path / ".github").mkdir()
    assert states(apply_to(tmp_path, creation(path))) == {path: "written"}


def make_link(root: Path) -> None:
    (root / "other").write_bytes(OLD)
    (root / "x").symlink_to("other")


def make_hard_link(root: Path) -> None:
    (root / "x").write_bytes(OLD)
    os.link(root / "x", root / "y")


def make_read_only(root: Path) -> None:
    (root / "x").write_bytes(OLD)
    (root / "x").chmod(0o444)


def make_socket(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(root)
        try:
            made.bind("x")
        finally:
            os.chdir(here)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (make_link, "not a regular file"),
        (make_hard_link, "several hard links"),
        (make_read_only, "read-only"),
        (make_socket, "not a regular file"),
        (lambda root: os.mkfifo(root / "x"), "not a regular file"),
        (lambda root: (root / "x").mkdir(), "not a regular file"),
        (lambda root: (root / "x").write_bytes(b"dirty\n"), "neither the old nor the new content"),
        (lambda root: None, "does not exist"),
    ],
)
def test_file_is_refused(tmp_path: Path, make: Callable[[Path], None], reason: str) -> None:
    make(tmp_path)
    check_refused(tmp_path, edit(b"x"), reason)


def test_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_bytes(OLD)
    if os.geteuid() == 0:
        os.chown(tmp_path / "x", 12345, -1)
        check_refused(tmp_path, edit(b"x"), "belongs to another user")
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        assert "belongs to another user" in reasons(apply_to(tmp_path, edit(b"x")))[b"x"]


@pytest.mark.parametrize("entry", ["file", "link", "dangling", "directory"])
def test_creation_over_an_existing_entry_is_refused(tmp_path: Path, entry: str) -> None:
    place = tmp_path / "x"
    match entry:
        case "file":
            place.write_bytes(OLD)
        case "link":
            place.symlink_to(tmp_path)
        case "dangling":
            place.symlink_to("nowhere")
        case _:
            place.mkdir()
    reason = "already exists" if entry == "file" else "not a regular file"
    check_refused(tmp_path, creation(b"x"), reason)


@pytest.mark.parametrize("marks", [(".git",), ("HEAD", "objects", "refs")])
def test_file_of_another_repository_is_refused(tmp_path: Path, marks: tuple[str, ...]) -> None:
    """A submodule has a file `.git`, a bare repository no `.git` at all."""
    (tmp_path / "sub/d").mkdir(parents=True)
    (tmp_path / ".git").write_text("gitdir: elsewhere")
    for mark in marks:
        (tmp_path / "sub" / mark).write_text("")
    (tmp_path / "sub/d/x").write_bytes(OLD)
    check_refused(tmp_path, edit(b"sub/d/x"), "directory sub is another repository")


def test_directory_that_is_a_link_is_refused(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.mkdir()
    root.mkdir()
    (outside / "x").write_bytes(OLD)
    (root / "d").symlink_to(outside)
    check_refused(root, edit(b"d/x"), "directory d is a file or a symbolic link")
    check_refused(root, creation(b"d/y"), "directory d is a file or a symbolic link")
    assert read_tree(outside) == {b"x": TreeFile(OLD)}


def test_several_reasons_are_listed_together(tmp_path: Path) -> None:
    make_hard_link(tmp_path)
    (tmp_path / "x").chmod(0o444)
    reason = reasons(apply_to(tmp_path, edit(b"x")))[b"x"]
    assert reason == "it has several hard links; it is read-only"


class UnwritableCalls(UnsyncedCalls):
    """Calls of a user who may write to nothing except one file, as on a read-only file system."""

    def can_write(self, directory: int, name: bytes) -> bool:
        return name == GOOD or (name == b"." and not os.readlink(f"/proc/self/fd/{directory}").endswith("/ro"))


def test_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(OLD)
    (tmp_path / "ro").mkdir()
    check_refused(tmp_path, edit(b"x"), "read-only", UnwritableCalls())
    check_refused(tmp_path, creation(b"ro/x"), "its directory is read-only", UnwritableCalls())


class SmallDiskCalls(UnsyncedCalls):
    """Calls on a disk with three free blocks."""

    def free_bytes(self, directory: int) -> int:
        return 3 * 4096


def test_changes_that_need_more_than_the_free_space_are_refused(tmp_path: Path) -> None:
    before = {b"%d" % number: TreeFile(OLD) for number in range(4)}
    write_tree(tmp_path, before)
    after = {path: TreeFile(NEW) for path in before}
    outcomes = apply_tree(tmp_path, before, after, calls=SmallDiskCalls())
    assert {*reasons(outcomes).values()} == {"the disk is full: 16.4 kB are needed, and 12.3 kB are free"}
    assert read_tree(tmp_path) == before
    fewer = {path: TreeFile(NEW) if path != b"0" else before[path] for path in before}
    assert {*states(apply_tree(tmp_path, before, fewer, calls=SmallDiskCalls())).values()} == {"written"}


class UnknownDiskCalls(UnsyncedCalls):
    """Calls on a network disk that neither states its free space nor lists its directories."""

    def free_bytes(self, directory: int) -> int:
        raise OSError(errno.ESTALE, "Stale file handle")

    def names(self, directory: int) -> list[bytes]:
        raise OSError(errno.ESTALE, "Stale file handle")


def test_what_a_disk_does_not_state_is_called_unknown(tmp_path: Path) -> None:
    outcomes = apply_to(tmp_path, creation(b"a"), creation(b"A"), creation(b"b"), calls=UnknownDiskCalls())
    case = "another path of the batch is equal if case is ignored, as may be here: Stale file handle"
    space = "the free space of its disk is unknown: Stale file handle"
    assert reasons(outcomes) == {b"A": case, b"a": case, b"b": space}


def test_content_of_4_gib_is_refused_before_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(OLD)
    contents = MemoryContents([OLD], {NEW: 4 << 30})
    outcomes = apply_writes(SmallDiskCalls(), os.fsencode(tmp_path), [edit(b"x")], contents)
    assert "the disk is full: 4.29 GB" in reasons(outcomes)[b"x"]


def test_missing_content_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(OLD)
    (tmp_path / "good.py").write_bytes(OLD)
    for contents in (MemoryContents([OLD]), MemoryContents([OLD], {NEW: 4})):
        writes = [edit(b"x"), FileWrite(path=GOOD, task="t", before=digest_bytes(OLD), after=None)]
        outcomes = apply_writes(UnsyncedCalls(), os.fsencode(tmp_path), writes, contents)
        assert "is missing or damaged in the store" in reasons(outcomes)[b"x"]
        assert read_tree(tmp_path) == {b"x": TreeFile(OLD), GOOD: TreeFile(OLD)}


def test_several_changes_of_one_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(OLD)
    outcomes = apply_to(tmp_path, edit(b"x"), creation(b"x"))
    assert [outcome.reason for outcome in outcomes] == ["the batch has several changes of this file"] * 2
    assert (tmp_path / "x").read_bytes() == OLD


def simulated_tree(names: list[str]) -> tuple[Disk, SimulatedTreeCalls]:
    """Return a directory `/p` with files that have the old content, on a disk that ignores case."""
    disk = Disk()
    calls = disk.calls()
    calls.mkdir(Path("/p"))
    for name in names:
        calls.write(calls.open(Path("/p") / name, os.O_CREAT | os.O_WRONLY), OLD)
    return disk, SimulatedTreeCalls(disk, calls, ignores_case=True)


def test_paths_that_are_equal_by_case_are_refused_if_the_file_system_ignores_case() -> None:
    disk, calls = simulated_tree(["Read.me"])
    outcomes = apply_writes(calls, b"/p", [edit(b"READ.ME"), edit(b"Read.me")], CONTENTS)
    assert {*reasons(outcomes).values()} == {"another path of the batch leads to the same file"}
    outcomes = apply_writes(calls, b"/p", [creation(b"a"), creation(b"A"), creation(b"b")], CONTENTS)
    assert {*reasons(outcomes)} == {b"a", b"A"}
    disk.calls().mkdir(Path("/p/Dir"))
    disk.calls().mkdir(Path("/p/Dir/sub"))
    outcomes = apply_writes(calls, b"/p", [creation(b"Dir/a"), creation(b"dir/A"), creation(b"dir/b")], CONTENTS)
    assert {*reasons(outcomes)} == {b"Dir/a", b"dir/A"}
    outcomes = apply_writes(calls, b"/p", [creation(b"New/f/a"), creation(b"new/F/b"), creation(b"c/d")], CONTENTS)
    assert {*reasons(outcomes)} == {b"New/f/a", b"new/F/b"}
    outcomes = apply_writes(calls, b"/p", [creation(b"New"), creation(b"new/b")], CONTENTS)
    assert {*reasons(outcomes)} == {b"New", b"new/b"}
    outcomes = apply_writes(calls, b"/p", [creation(b"READ.ME")], CONTENTS)
    assert reasons(outcomes) == {b"READ.ME": "it already exists"}


def test_paths_that_are_equal_by_case_are_refused_late_in_an_empty_directory() -> None:
    disk, calls = simulated_tree([])
    outcomes = apply_writes(calls, b"/p", [creation(b"A"), creation(b"a")], CONTENTS)
    assert states(outcomes) == {b"A": "written", b"a": "refused"}
    assert [*disk.calls().listing(Path("/p"))] == ["A"]


def test_paths_that_are_equal_by_case_are_written_if_case_matters(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(OLD)
    writes = [creation(path) for path in (b"a", b"A", b"New/f/a", b"new/f/a", b"NEW/f")]
    assert {*states(apply_to(tmp_path, *writes)).values()} == {"written"}


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o664, 0o755, 0o4755, 0o2755, 0o6711])
def test_permissions_stay_without_setuid_and_setgid(tmp_path: Path, mode: int) -> None:
    (tmp_path / "x").write_bytes(OLD)
    (tmp_path / "x").chmod(mode)
    assert states(apply_to(tmp_path, edit(b"x"))) == {b"x": "written"}
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == mode & 0o777


@pytest.mark.parametrize(
    ("mode", "executable", "expected"),
    [
        (0o644, True, 0o755),
        (0o600, True, 0o700),
        (0o640, True, 0o750),
        (0o755, False, 0o644),
        (0o744, True, 0o744),
        (0o655, False, 0o655),
    ],
)
def test_executable_bits_follow_the_change(tmp_path: Path, mode: int, executable: bool, expected: int) -> None:
    (tmp_path / "x").write_bytes(OLD)
    (tmp_path / "x").chmod(mode)
    write = FileWrite(path=b"x", task="t", before=digest_bytes(OLD), after=digest_bytes(NEW), executable=executable)
    apply_to(tmp_path, write)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == expected


def test_change_of_the_content_alone_keeps_the_permissions_that_the_user_set_since(tmp_path: Path) -> None:
    before, after = {b"x": TreeFile(OLD)}, {b"x": TreeFile(NEW)}
    write_tree(tmp_path, {b"x": TreeFile(OLD, 0o755)})
    assert states(apply_tree(tmp_path, before, after)) == {b"x": "written"}
    assert read_tree(tmp_path) == {b"x": TreeFile(NEW, 0o755)}
    assert states(apply_tree(tmp_path, before, after)) == {b"x": "applied"}
    assert states(apply_tree(tmp_path, before, after, is_reversed=True)) == {b"x": "written"}
    assert read_tree(tmp_path) == {b"x": TreeFile(OLD, 0o755)}


def test_extended_attributes_are_copied_and_times_are_not(tmp_path: Path) -> None:
    place = tmp_path / "x"
    place.write_bytes(OLD)
    os.utime(place, (1, 1))
    try:
        os.setxattr(place, "user.origin", b"here")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    apply_to(tmp_path, edit(b"x"))
    assert os.getxattr(place, "user.origin") == b"here"
    assert place.stat().st_mtime > 1


def refuse_call(*_: object) -> None:
    raise PermissionError(errno.EPERM, "refused")


def test_group_is_kept_or_gets_no_permissions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = next((group for group in (12345, *os.getgroups()) if group != os.getegid()), None)
    place = tmp_path / "x"
    place.write_bytes(OLD)
    place.chmod(0o664)
    try:
        os.chown(place, -1, -1 if other is None else other)
    except PermissionError:
        pytest.skip("this user has one group")
    group = place.stat().st_gid
    apply_to(tmp_path, edit(b"x"))
    assert (place.stat().st_gid, stat.S_IMODE(place.stat().st_mode)) == (group, 0o664)
    place.write_bytes(OLD)
    monkeypatch.setattr(os, "fchown", refuse_call)
    apply_to(tmp_path, edit(b"x"))
    assert stat.S_IMODE(place.stat().st_mode) == (0o664 if group == os.getegid() else 0o604)


def test_capabilities_are_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_names: list[str] = []
    monkeypatch.setattr(os, "listxattr", lambda _: ["user.a", "security.capability", "user.b"])
    monkeypatch.setattr(os, "getxattr", lambda *_: b"")
    monkeypatch.setattr(os, "setxattr", lambda _, name, value: set_names.append(name))
    (tmp_path / "x").write_bytes(OLD)
    apply_to(tmp_path, edit(b"x"))
    assert set_names == ["user.a", "user.b"]


def test_privileged_bits_are_never_set(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(OLD)
    with (tmp_path / "x").open("rb") as source, (tmp_path / "y").open("wb") as target:
        RealTreeCalls().copy_status(source.fileno(), target.fileno(), 0o7755)
    assert stat.S_IMODE((tmp_path / "y").stat().st_mode) == 0o755


@pytest.mark.parametrize("entry", ["file", "link"])
def test_temporary_file_never_replaces_or_follows_an_entry(tmp_path: Path, entry: str) -> None:
    if entry == "file":
        (tmp_path / "x").write_bytes(OLD)
    else:
        (tmp_path / "x").symlink_to("elsewhere")
    calls = RealTreeCalls()
    root = calls.open_root(os.fsencode(tmp_path))
    with pytest.raises(FileExistsError):
        calls.create(root, b"x", 0o600)
    calls.close(root)
    assert os.listdir(tmp_path) == ["x"]


class UnlockableCalls(UnsyncedCalls):
    """Calls on a file system without locks of directories, such as NFS."""

    def try_lock(self, fd: int) -> bool:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def test_file_system_without_locks_is_an_error_that_names_git_apply(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(OLD)
    with pytest.raises(InvalidInput, match="cannot lock") as raised:
        apply_to(tmp_path, edit(b"x"), calls=UnlockableCalls())
    assert "git apply" in (raised.value.hint or "")


def test_created_file_has_the_permissions_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        writes = [creation(b"x"), FileWrite(path=b"y", task="t", before=None, after=digest_bytes(NEW), executable=True)]
        apply_to(tmp_path, *writes)
    finally:
        os.umask(before)
    assert {path: file.mode for path, file in read_tree(tmp_path).items()} == {b"x": 0o640, b"y": 0o750}


def test_file_that_has_the_new_content_counts_as_applied_whatever_its_links(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(NEW)
    os.link(tmp_path / "x", tmp_path / "y")
    deletion = FileWrite(path=b"z", task="t", before=digest_bytes(OLD), after=None)
    outcomes = apply_to(tmp_path, edit(b"x"), creation(b"y"), deletion)
    assert states(outcomes) == {b"x": "applied", b"y": "applied", b"z": "applied"}


def test_dry_run_changes_nothing_not_even_temporary_files(tmp_path: Path) -> None:
    leftover = f".codebatch-{'0' * 32}.tmp"
    (tmp_path / leftover).write_bytes(b"")
    write_tree(tmp_path, {b"x": TreeFile(OLD)})
    outcomes = apply_tree(tmp_path, {b"x": TreeFile(OLD)}, {b"x": TreeFile(NEW)}, is_dry=True)
    assert states(outcomes) == {b"x": "left_out"}
    assert outcomes[0].reason == "nothing is written with --dry-run"
    assert {*read_tree(tmp_path)} == {b"x", leftover.encode()}


def test_leftovers_of_others_are_not_removed(tmp_path: Path) -> None:
    """A directory or a FIFO with the name of a temporary file was not made by `apply`."""
    (tmp_path / f".codebatch-{'0' * 32}.tmp").mkdir()
    os.mkfifo(tmp_path / f".codebatch-{'1' * 32}.tmp")
    (tmp_path / "x").write_bytes(OLD)
    assert states(apply_to(tmp_path, edit(b"x"))) == {b"x": "written"}
    assert len(os.listdir(tmp_path)) == 3


def test_root_must_be_a_directory(tmp_path: Path) -> None:
    for name in ("missing", "file"):
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(InvalidInput, match="cannot open"):
            apply_to(tmp_path / name, edit(b"x"))


def test_conflict_names_the_tasks_and_the_files() -> None:
    changes = [
        ProposedChange(
            change=TreeChange(path=path, before=None, after=digest_bytes(NEW)), task=task, added=1, removed=0
        )
        for path, task in [(b"a", "one"), (b"a", "two"), (b"b\xff", "two"), (b"b\xff", "one"), (b"c", "one")]
    ]
    with pytest.raises(InvalidInput) as raised:
        refuse_conflicts(changes)
    assert raised.value.message == r"several tasks change 2 files: a (one, two); b\xff (one, two)"
    refuse_conflicts([change for change in changes if change.task == "one"])


def test_real_sync_is_sync_2() -> None:
    assert RealTreeCalls.sync is os.sync


def test_descriptors_are_closed(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    (tmp_path / "d/e").mkdir(parents=True)
    (tmp_path / "link").symlink_to("d")
    write_tree(tmp_path, {b"d/e/x": TreeFile(OLD), b"d/y": TreeFile(OLD)})
    apply_to(tmp_path, edit(b"d/e/x"), edit(b"d/y"), creation(b"link/z"), creation(b"no/z"), is_partial=True)
    assert len(os.listdir("/proc/self/fd")) == before


def test_immutable_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(OLD)
    if subprocess.run(["chattr", "+i", tmp_path / "x"], capture_output=True, check=False).returncode:
        pytest.skip("chattr has no effect here")
    try:
        check_refused(tmp_path, edit(b"x"), "read-only")
    finally:
        subprocess.run(["chattr", "-i", tmp_path / "x"], check=True)
