"""Directories that `apply` makes and removes, and directories that files replace, or the other way round."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from codebatch.model.digest import digest_bytes
from codebatch.operations.changes.apply import apply_writes
from codebatch.operations.changes.checks import FileOutcome
from codebatch.operations.changes.file_writes import FileWrite
from tests.changes.trees import (
    MemoryContents,
    TreeFile,
    UnsyncedCalls,
    apply_tree,
    read_directories,
    read_tree,
    reasons,
    states,
    write_tree,
)

X = TreeFile(b"x\n")


def link(target: bytes) -> TreeFile:
    return TreeFile(target, kind="link")


def apply_edits(
    root: Path, *edits: tuple[bytes, bytes | None, bytes | None], is_partial: bool = False
) -> list[FileOutcome]:
    """Apply changes of files, each a path with the old and the new content."""
    contents = {content for _, *pair in edits for content in pair if content is not None}
    writes = [
        FileWrite(
            path=path,
            task="t",
            before=None if before is None else digest_bytes(before),
            after=None if after is None else digest_bytes(after),
        )
        for path, before, after in edits
    ]
    return apply_writes(
        UnsyncedCalls(), os.fsencode(root), writes, MemoryContents(sorted(contents)), is_partial=is_partial
    )


def test_new_directories_have_the_permissions_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        apply_tree(tmp_path, {}, {b"new/f/x": X})
    finally:
        os.umask(before)
    assert {stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in ("new", "new/f")} == {0o750}


def test_directory_is_only_made_for_a_file_that_is_created(tmp_path: Path) -> None:
    outcomes = apply_edits(tmp_path, (b"new/x", b"old", b"new"))
    assert reasons(outcomes) == {b"new/x": "directory new does not exist"}
    assert states(apply_edits(tmp_path, (b"new/x", b"old", None))) == {b"new/x": "applied"}
    assert read_directories(tmp_path) == set()


def test_nothing_is_made_or_removed_before_all_files_were_checked(tmp_path: Path) -> None:
    before, after = {b"old/x": X, b"y": X}, {b"new/x": X, b"y": TreeFile(b"y\n")}
    write_tree(tmp_path, before)
    assert {*states(apply_tree(tmp_path, before, after, is_dry=True)).values()} == {"left_out"}
    (tmp_path / "y").write_bytes(b"dirty")
    (tmp_path / "gone").mkdir()
    outcomes = apply_tree(tmp_path, {**before, b"gone/x": X}, after)
    assert states(outcomes) == {b"gone/x": "applied", b"new/x": "left_out", b"old/x": "left_out", b"y": "refused"}
    assert read_directories(tmp_path) == {b"gone", b"old"}


def test_refused_deletion_keeps_the_directory(tmp_path: Path) -> None:
    """The directory is empty, but two changes concern the file, so none is done."""
    (tmp_path / "d").mkdir()
    outcomes = apply_edits(tmp_path, (b"d/x", b"x", None), (b"d/x", b"x", None), (b"y", None, b"y"), is_partial=True)
    assert states(outcomes) == {b"d/x": "refused", b"y": "written"}
    assert read_directories(tmp_path) == {b"d"}


def test_directories_are_made_in_a_directory_that_may_be_changed(tmp_path: Path) -> None:
    class ReadOnlyCalls(UnsyncedCalls):
        def can_write(self, directory: int, name: bytes) -> bool:
            return False

    outcomes = apply_tree(tmp_path, {}, {b"new/f/x": X}, calls=ReadOnlyCalls())
    assert reasons(outcomes) == {b"new/f/x": "its directory is read-only"}
    (tmp_path / "sub/.git").mkdir(parents=True)
    assert reasons(apply_tree(tmp_path, {}, {b"sub/new/x": X})) == {b"sub/new/x": "directory sub is another repository"}
    (tmp_path / "out").symlink_to("/tmp")
    kind = "a file or a symbolic link"
    assert reasons(apply_tree(tmp_path, {}, {b"out/new/x": X})) == {b"out/new/x": f"directory out is {kind}"}
    assert reasons(apply_tree(tmp_path, {}, {b"new/.GIT/x": X})) == {
        b"new/.GIT/x": "the path belongs to git or codebatch"
    }
    assert read_directories(tmp_path) == {b"sub", b"sub/.git"}


@pytest.mark.parametrize(("blocks", "is_enough"), [(3, False), (4, True)])
def test_directories_need_space(tmp_path: Path, blocks: int, is_enough: bool) -> None:
    """Two files in two directories."""

    class SmallCalls(UnsyncedCalls):
        def free_bytes(self, directory: int) -> int:
            return blocks * 4096

    after = {b"new/f/x": X, b"new/f/y": X}
    found = {*states(apply_tree(tmp_path, {}, after, calls=SmallCalls())).values()}
    assert found == ({"written"} if is_enough else {"refused"})


def test_only_directories_that_are_emptied_are_removed(tmp_path: Path) -> None:
    before = {b"a/b/x": X, b"a/y": X, b"c/d/e/x": X, b"f/x": X, b"f/y": X}
    write_tree(tmp_path, before)
    for name in ("empty", "f/empty", "c/empty"):
        (tmp_path / name).mkdir()
    assert {*states(apply_tree(tmp_path, before, {b"a/y": X})).values()} == {"written"}
    assert read_directories(tmp_path) == {b"a", b"c", b"c/empty", b"empty", b"f", b"f/empty"}
    assert {*states(apply_tree(tmp_path, before, {b"a/y": X})).values()} == {"applied"}
    apply_tree(tmp_path, before, {b"a/y": X}, is_reversed=True)
    assert read_tree(tmp_path) == before


def test_last_file_of_the_tree_is_deleted_and_the_root_stays(tmp_path: Path) -> None:
    write_tree(tmp_path / "root", {b"x": X})
    assert states(apply_tree(tmp_path / "root", {b"x": X}, {})) == {b"x": "written"}
    assert os.listdir(tmp_path) == ["root"]


@pytest.mark.parametrize("entry", ["other", "d/other", "d/empty", "l", "new.tmp"])
def test_directory_with_another_entry_is_not_replaced_by_a_file(tmp_path: Path, entry: str) -> None:
    before, after = {b"x/1": X, b"x/d/2": X}, {b"x": X}
    write_tree(tmp_path, before)
    place = tmp_path / "x" / entry
    match place.name:
        case "empty":
            place.mkdir()
        case "l":
            place.symlink_to("1")
        case _:
            place.write_bytes(b"mine")
    outcomes = apply_tree(tmp_path, before, after)
    assert reasons(outcomes) == {b"x": "a directory of this name has files that are not deleted"}
    assert {*before} < {*read_tree(tmp_path)} | {b"x/d/empty"}
    # The deletions alone are done.
    assert states(apply_tree(tmp_path, before, after, is_partial=True)) == {
        b"x": "refused", b"x/1": "written", b"x/d/2": "written",
    }  # fmt: skip
    assert os.path.lexists(place)


def test_directory_is_not_replaced_if_one_of_its_files_is_refused(tmp_path: Path) -> None:
    before = {b"x/1": X, b"x/2": X}
    write_tree(tmp_path, before)
    (tmp_path / "x/1").write_bytes(b"dirty")
    outcomes = apply_tree(tmp_path, before, {b"x": X})
    assert {path: reason[:20] for path, reason in reasons(outcomes).items()} == {
        b"x": "a directory of this ", b"x/1": "its content is neith",
    }  # fmt: skip
    assert states(outcomes)[b"x/2"] == "left_out"


@pytest.mark.parametrize("old", [X, link(b".")])
def test_file_is_not_replaced_by_a_directory_if_its_deletion_is_refused(tmp_path: Path, old: TreeFile) -> None:
    after = {b"x/y": X}
    write_tree(tmp_path, {b"x": old._replace(content=b"dirty")})
    outcomes = apply_tree(tmp_path, {b"x": old}, after, is_partial=True)
    assert reasons(outcomes)[b"x/y"] == "directory x is a file or a symbolic link"
    assert states(outcomes) == {b"x": "refused", b"x/y": "refused"}


def test_file_and_directory_of_one_name_are_refused(tmp_path: Path) -> None:
    outcomes = apply_edits(tmp_path, (b"x", None, b"1"), (b"x/y", None, b"2"))
    assert reasons(outcomes) == {b"x": "another change of the batch needs a directory of this name"}
    (tmp_path / "x").write_bytes(b"1")
    outcomes = apply_edits(tmp_path, (b"x", b"1", b"2"), (b"x/y", None, b"2"))
    assert reasons(outcomes) == {b"x/y": "directory x is a file or a symbolic link"}


def test_edited_file_is_not_in_the_place_of_a_directory(tmp_path: Path) -> None:
    write_tree(tmp_path, {b"x/1": X})
    outcomes = apply_edits(tmp_path, (b"x/1", b"x\n", None), (b"x", b"1", b"2"))
    assert reasons(outcomes) == {b"x": "it is not a regular file"}


def test_deletion_below_a_file_of_the_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"mine")
    outcomes = apply_edits(tmp_path, (b"x/y", b"1", None))
    assert reasons(outcomes) == {b"x/y": "directory x is a file or a symbolic link"}
    (tmp_path / "x").unlink()
    (tmp_path / "x/y").mkdir(parents=True)
    assert reasons(apply_edits(tmp_path, (b"x/y", b"1", None))) == {b"x/y": "it is not a regular file"}


def test_late_refusal_of_a_deletion_leaves_the_file_in_the_place_of_the_directory(tmp_path: Path) -> None:
    class TouchingCalls(UnsyncedCalls):
        def sync(self) -> None:
            (tmp_path / "x").write_bytes(b"mine")

    before = {b"x": X, b"y/1": X}
    write_tree(tmp_path, before)
    outcomes = apply_tree(tmp_path, before, {b"x/y": X, b"y": X}, calls=TouchingCalls())
    assert reasons(outcomes) == {
        b"x": "it changed while apply was running", b"x/y": "directory x is a file or a symbolic link",
    }  # fmt: skip
    assert read_tree(tmp_path) == {b"x": TreeFile(b"mine"), b"y": X}
