"""What a change set cannot record: it is reported with the reason, counted in the outcome, and its tree is kept."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch.model.change import UnrecordedReason, decode_change_set
from codebatch.snapshotting.tree_contents import TreeContents, TreeReading, read_tree
from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.system.files.files import RealFiles
from codebatch.system.files.writable_tree import restore_permissions
from codebatch_workers.commands.attempt import AttemptResult
from codebatch_workers.commands.tree_changes import list_changes
from tests.support.git_repositories import git
from tests.trees.places import Kind, commit_all, isolated, make_tree_place, write_files
from tests.trees.test_tree_maker import make_maker, make_tree

KINDS = pytest.mark.parametrize("kind", ["worktree", "copy"])
START = {"a": b"a\n", "sub/b": b"b\n", ".gitignore": b"*.o\nbuild/\n*.sock\n"}


def read(root: Path, before: TreeContents | None = None, *, kind: Kind, links: tuple[bytes, ...] = ()) -> TreeReading:
    """Read a tree, as a work tree or as a copy."""
    objects = ObjectStore(RealFiles(), root.parent / "objects")
    submodules = None if before is not None else {b"module": "1" * 40}
    with PackWriter(objects) as writer:
        return read_tree(
            bytes(root), objects, writer,
            stamp_ns=0, before=before, links=links, submodules=submodules, uses_git=kind == "worktree",
        )  # fmt: skip


def unrecorded(root: Path, change: Callable[[], object], *, kind: Kind) -> list[tuple[str, UnrecordedReason]]:
    """Return what is not recorded after a change of a tree."""
    write_files(root, START)
    if kind == "worktree":
        git(root, "init", "-q")
        commit_all(root)
        (root / "module").mkdir()
    start = read(root, kind=kind)
    assert start.unrecorded == []
    change()
    found = read(root, start.contents, kind=kind).unrecorded
    return [(os.fsdecode(each.path), each.reason) for each in found]


def make_repository(path: Path) -> None:
    write_files(path, {"x": b"x\n"})
    git(path, "init", "-q")


def make_special(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)


Reported = list[tuple[str, UnrecordedReason]]

CHANGES: dict[str, tuple[Callable[[Path], object], Reported]] = {
    "new file": (lambda root: write_files(root, {"new/x": b"x"}), []),
    "empty directory": (lambda root: (root / "d/e").mkdir(parents=True), []),
    "removed directory": (lambda root: shutil.rmtree(root / "sub"), []),
    "file of codebatch": (lambda root: write_files(root, {"codebatch-report.html": b"", "x.codebatch-part": b""}), []),
    "ignore file": (lambda root: write_files(root, {".codebatchignore": b"*\n", "new/x": b"x"}), []),
    "repository": (lambda root: make_repository(root / "n"), [("n", "repository")]),
    "deep repository": (lambda root: make_repository(root / "d/e/n"), [("d/e/n", "repository")]),
    "ignored repository": (lambda root: make_repository(root / "build"), [("build", "ignored")]),
    "fifo": (lambda root: make_special(root / "sub/f"), [("sub/f", "special")]),
    "fifo alone": (lambda root: make_special(root / "d/e/f"), [("d/e/f", "special")]),
    "fifo in place of a file": (lambda root: make_special(root / "a"), [("a", "special")]),
    "ignored fifo": (lambda root: make_special(root / "f.sock"), [("f.sock", "ignored")]),
    "ignored fifo alone": (lambda root: make_special(root / "d/f.sock"), [("d/f.sock", "ignored")]),
    "ignored file": (lambda root: write_files(root, {"sub/x.o": b""}), [("sub/x.o", "ignored")]),
    "ignored directory": (lambda root: write_files(root, {"build/x": b"", "build/y/z": b""}), [("build", "ignored")]),
    "only ignored files": (lambda root: write_files(root, {"d/e/x.o": b""}), [("d", "ignored")]),
    "reserved name": (lambda root: write_files(root, {"sub/.GIT": b""}), [("sub/.GIT", "reserved")]),
    "reserved directory": (lambda root: write_files(root, {"d/.Git/x": b""}), [("d/.Git", "reserved")]),
    "git at the top": (lambda root: write_files(root, {".git/hooks/x": b""}), []),
}


@KINDS
@pytest.mark.parametrize(("change", "expected"), CHANGES.values(), ids=CHANGES)
def test_everything_in_a_tree_is_recorded_or_reported(
    tmp_path: Path,
    kind: Kind,
    change: Callable[[Path], object],
    expected: Reported,
) -> None:
    root = tmp_path / "tree"
    assert unrecorded(root, lambda: change(root), kind=kind) == expected


@KINDS
def test_repository_around_old_files_is_reported(tmp_path: Path, kind: Kind) -> None:
    """git lists the files of a directory that has tracked files. A walk does not enter other repositories."""
    root = tmp_path / "tree"
    found = unrecorded(root, lambda: make_repository(root / "sub"), kind=kind)
    assert found == [("sub", "repository") if kind == "copy" else ("sub/.git", "reserved")]


def test_socket_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path / "t", START)
    monkeypatch.chdir(tmp_path / "t")
    with socket.socket(socket.AF_UNIX) as opened:
        assert unrecorded(tmp_path / "t", lambda: opened.bind("s"), kind="copy") == [("s", "special")]


def test_linked_work_tree_is_reported(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    found = unrecorded(root, lambda: git(root, "worktree", "add", "-q", "--detach", "w"), kind="worktree")
    assert found == [("w", "repository")]


@KINDS
def test_link_to_the_user_is_left_out_only_while_it_is_a_link(tmp_path: Path, kind: Kind) -> None:
    root = tmp_path / "tree"
    write_files(root, START)
    if kind == "worktree":
        git(root, "init", "-q")
    (root / "linked").symlink_to(tmp_path)
    start = read(root, kind=kind, links=(b"linked", b"sub"))
    assert (b"linked" in start.contents.rows, b"sub/b" in start.contents.rows) == (False, True)
    (root / "linked").unlink()
    write_files(root, {"linked/x": b"", "sub/new": b""})
    after = read(root, start.contents, kind=kind, links=(b"linked", b"sub"))
    assert (sorted(after.contents.rows.keys() - start.contents.rows.keys()), after.unrecorded) == (
        [b"linked/x", b"sub/new"],
        [],
    )


UPDATE = "git -c protocol.file.allow=always submodule --quiet update --init"
COMMIT = "git -c user.name=n -c user.email=n@n commit -q --allow-empty -m m"
SUBMODULE_CHANGES = {
    "true": False,
    UPDATE: False,
    f"{UPDATE}; echo > lib/x.o": False,
    f"{UPDATE}; echo new > lib/x": True,
    f"{UPDATE}; echo > lib/new": True,
    f"{UPDATE}; rm lib/x": True,
    f"{UPDATE}; cd lib; {COMMIT}": True,
    "echo x > lib/x": True,
    "rmdir lib": True,
    "rmdir lib; echo > lib": True,
}


@pytest.mark.parametrize(("text", "is_reported"), SUBMODULE_CHANGES.items())
def test_submodule_is_reported_only_if_it_has_changed(tmp_path: Path, text: str, is_reported: bool) -> None:
    write_files(tmp_path, {"other/x": b"x\n", "other/.gitignore": b"*.o\n", "root/a": b"a\n"})
    git(tmp_path / "other", "init", "-q")
    commit_all(tmp_path / "other")
    git(tmp_path / "root", "init", "-q")
    allow = ("-c", "protocol.file.allow=always")
    git(tmp_path / "root", *allow, "submodule", "--quiet", "add", f"{tmp_path}/other", "lib")
    place = make_tree_place(tmp_path, isolated("true"), files={})
    maker = make_maker(place)
    tree = make_tree(maker)
    subprocess.run(["/bin/sh", "-c", text], cwd=tree.root, check=True)
    notes: list[str] = []
    result = tree.finish(AttemptResult(type="result"), notes.append)
    assert result.unrecorded == is_reported
    path = place.trees.path(tree.name)
    expected = ["not recorded in the changes: lib (changed submodule)", f"the tree is kept: {path}"]
    assert notes == (expected if is_reported else [])
    assert [each.path for each in decode_change_set(place.read(result.changes)).lost] == [b"lib"] * is_reported
    maker.end(tree, result)
    maker.remove_ended()
    assert place.names() == ["a.r1"] * is_reported


@pytest.mark.parametrize(("kind", "old"), [("link", b"t"), ("file", b"t")])
def test_change_of_the_type_alone_is_reported(tmp_path: Path, kind: str, old: bytes) -> None:
    for name, is_link in (("before", kind == "link"), ("after", kind != "link")):
        (tmp_path / name).mkdir()
        if is_link:
            os.symlink(old, bytes(tmp_path / name / "k"))
        else:
            (tmp_path / name / "k").write_bytes(old)
    before, after = (
        {entry.path: entry for entry in read(tmp_path / name, kind="copy").contents.entries()}
        for name in ("before", "after")
    )
    changes, found = list_changes(before, after)
    assert (changes, [(each.path, each.reason) for each in found]) == ([], [(b"k", "type")])


def test_tree_is_not_kept_against_the_settings(tmp_path: Path) -> None:
    place = make_tree_place(tmp_path, isolated("true"), keep="none")
    maker = make_maker(place)
    tree = make_tree(maker)
    make_special(tree.root / "fifo")
    result = tree.finish(AttemptResult(type="result"), print)
    maker.end(tree, result)
    maker.remove_ended()
    assert (result.unrecorded, place.names()) == (1, [])


def test_permissions_that_the_owner_lacks_are_restored(tmp_path: Path) -> None:
    write_files(tmp_path, {"d/e/x": b"", "d/y": b"", "z": b""})
    (tmp_path / "link").symlink_to("/")
    modes = {"d/e/x": 0o000, "d/e": 0o400, "d/y": 0o2311, "d": 0o100, "z": 0o640}
    for name, mode in modes.items():
        (tmp_path / name).chmod(mode)
    restore_permissions(tmp_path)
    expected = {"d/e/x": 0o400, "d/e": 0o700, "d/y": 0o2711, "d": 0o700, "z": 0o640}
    assert {name: (tmp_path / name).stat().st_mode & 0o7777 for name in modes} == expected
