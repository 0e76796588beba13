"""Trees that change while `apply` runs: between the check and the write, and by a hostile process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.changes.trees import TreeFile, UnsyncedCalls, apply_tree, read_tree, reasons, states, write_tree

BEFORE = {b"d/x": TreeFile(b"old\n"), b"d/y": TreeFile(b"gone\n"), b"z": TreeFile(b"last\n")}
AFTER = {b"d/x": TreeFile(b"new\n"), b"d/n": TreeFile(b"created\n"), b"z": TreeFile(b"next\n")}

_SWAPS = 10_000
_SWAPPER = """
import os, shutil, sys
directory, target, swaps = sys.argv[1], sys.argv[2], int(sys.argv[3])
for _ in range(swaps):
    os.rename(directory, directory + ".kept")
    try:
        os.symlink(target, directory)
        os.unlink(directory)
    except FileExistsError:
        pass
    while True:
        try:
            os.rename(directory + ".kept", directory)
            break
        except OSError:  # `apply` made the directory meanwhile.
            shutil.rmtree(directory, ignore_errors=True)
"""


class InterruptedCalls(UnsyncedCalls):
    """Calls during which another process acts: after all temporary files were written, before the first rename."""

    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__()
        self._act = act

    def sync(self) -> None:
        self._act()


def write_in_place(place: Path) -> None:
    """Write bytes of the same length, and keep the time of the file as it was."""
    status = place.stat()
    with place.open("r+b") as file:
        file.write(b"mine")
    os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))


def replace_by_copy(place: Path) -> None:
    content = place.read_bytes()
    place.with_name("copy").write_bytes(content)
    place.with_name("copy").rename(place)


def replace_by_link(place: Path) -> None:
    place.rename(place.with_name("moved"))
    place.symlink_to("moved")


@pytest.mark.parametrize("act", [write_in_place, replace_by_copy, replace_by_link, Path.unlink, Path.touch])
@pytest.mark.parametrize("path", ["d/x", "d/y"])
def test_file_that_changes_after_its_check_is_left_as_it_is(
    tmp_path: Path, act: Callable[[Path], None], path: str
) -> None:
    write_tree(tmp_path, BEFORE)
    seen: dict[bytes, TreeFile] = {}

    def interfere() -> None:
        act(tmp_path / path)
        seen.update(read_tree(tmp_path))

    outcomes = apply_tree(tmp_path, BEFORE, AFTER, calls=InterruptedCalls(interfere))
    assert reasons(outcomes) == {path.encode(): "it changed while apply was running"}
    now = read_tree(tmp_path)
    assert now.get(path.encode()) == seen.get(path.encode())
    assert now[b"d/n"] == AFTER[b"d/n"]
    assert not list(tmp_path.rglob(".codebatch-*"))


class SwappedCalls(UnsyncedCalls):
    """Calls during which another process acts between lstat(2) and open(2) of a file."""

    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__()
        self._act = act

    def open_file(self, directory: int, name: bytes) -> int:
        self._act()
        return super().open_file(directory, name)


def test_file_that_becomes_a_link_or_a_fifo_is_neither_followed_nor_waited_for(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    before, after = {b"x": TreeFile(b"old\n")}, {b"x": TreeFile(b"new\n")}
    for make, reason in (
        (lambda: (root / "x").symlink_to(outside / "x"), "cannot be read: Too many levels of symbolic links"),
        (lambda: os.mkfifo(root / "x"), "it is not a regular file"),
    ):
        write_tree(root, before)
        write_tree(outside, before)

        def swap(make: Callable[[], None] = make) -> None:
            (root / "x").unlink()
            make()

        outcomes = apply_tree(root, before, after, calls=SwappedCalls(swap))
        assert reasons(outcomes) == {b"x": reason}
        assert read_tree(outside) == before
        (root / "x").unlink()


def test_file_that_appears_after_its_check_is_not_replaced(tmp_path: Path) -> None:
    write_tree(tmp_path, BEFORE)

    def create() -> None:
        (tmp_path / "d/n").write_text("mine")

    outcomes = apply_tree(tmp_path, BEFORE, AFTER, calls=InterruptedCalls(create))
    assert reasons(outcomes) == {b"d/n": "a file of this name was created while apply was running"}
    assert (tmp_path / "d/n").read_text() == "mine"
    assert not list(tmp_path.rglob(".codebatch-*"))


@pytest.mark.parametrize("is_same_tree", [False, True])
def test_directory_that_becomes_a_link_after_its_check_leads_nowhere(tmp_path: Path, is_same_tree: bool) -> None:
    """The link leads to a copy of the directory, with the same files and even the temporary files."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    write_tree(root, BEFORE)
    outside.mkdir()

    def swap() -> None:
        if is_same_tree:
            (root / "d").rename(outside / "d")
            (root / "d").symlink_to(outside / "d")
        else:
            (root / "d").rename(root / "moved")
            (root / "d").symlink_to(outside)

    outcomes = apply_tree(root, BEFORE, AFTER, calls=InterruptedCalls(swap))
    assert states(outcomes) == {b"d/n": "refused", b"d/x": "refused", b"d/y": "refused", b"z": "written"}
    kept = read_tree(outside)
    temporary = {path for path in kept if b".codebatch-" in path}
    expected = {b"d/x": BEFORE[b"d/x"], b"d/y": BEFORE[b"d/y"]} if is_same_tree else {}
    assert {path: file for path, file in kept.items() if path not in temporary} == expected


def test_directory_is_opened_again_before_its_files_are_replaced(tmp_path: Path) -> None:
    """Also if there is no other directory."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    before, after = {b"d/x": TreeFile(b"old\n")}, {b"d/x": TreeFile(b"new\n")}
    write_tree(root, before)

    def move() -> None:
        (root / "d").rename(outside)

    outcomes = apply_tree(root, before, after, calls=InterruptedCalls(move))
    assert reasons(outcomes) == {b"d/x": "directory d does not exist"}
    assert (outside / "x").read_bytes() == b"old\n"


def test_directory_that_is_removed_before_a_file_is_created_in_it_is_not_an_error(tmp_path: Path) -> None:
    class RemovingCalls(UnsyncedCalls):
        def create(self, directory: int, name: bytes, mode: int) -> int:
            (tmp_path / "new").rmdir()
            return super().create(directory, name, mode)

    outcomes = apply_tree(tmp_path, {}, {b"new/x": TreeFile(b"x\n")}, calls=RemovingCalls())
    assert reasons(outcomes) == {b"new/x": "it changed while apply was running"}
    assert not any(tmp_path.iterdir())


class NewDirectoryCalls(UnsyncedCalls):
    """Calls during which another process acts whenever a directory was made."""

    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__()
        self._act = act

    def mkdir(self, directory: int, name: bytes) -> None:
        super().mkdir(directory, name)
        self._act()


@pytest.mark.parametrize("entry", ["link", "fifo", "repository"])
def test_new_directory_that_is_replaced_at_once_leads_nowhere(tmp_path: Path, entry: str) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    write_tree(root, BEFORE)
    outside.mkdir()

    def swap() -> None:
        (root / "new").rmdir()
        match entry:
            case "link":
                (root / "new").symlink_to(outside)
            case "fifo":
                os.mkfifo(root / "new")
            case _:
                (root / "new/.git").mkdir(parents=True)

    after = {**AFTER, b"new/f/x": TreeFile(b"x\n")}
    outcomes = apply_tree(root, BEFORE, after, calls=NewDirectoryCalls(swap))
    kind = "another repository" if entry == "repository" else "a file or a symbolic link"
    assert reasons(outcomes) == {b"new/f/x": f"directory new is {kind}"}
    assert read_tree(outside) == {}
    shutil.rmtree(root / "new") if entry == "repository" else (root / "new").unlink()
    assert read_tree(root) == BEFORE


def test_new_directory_that_appears_meanwhile_is_used_and_kept(tmp_path: Path) -> None:
    class EarlierCalls(UnsyncedCalls):
        def mkdir(self, directory: int, name: bytes) -> None:
            super().mkdir(directory, name)
            super().mkdir(directory, name)

    after = {b"new/x": TreeFile(b"x\n")}
    assert states(apply_tree(tmp_path, {}, after, calls=EarlierCalls())) == {b"new/x": "written"}
    assert read_tree(tmp_path) == after


@pytest.mark.parametrize("entry", ["link", "directory"])
def test_replaced_file_is_never_followed(tmp_path: Path, entry: str) -> None:
    """The file is deleted, then a directory is made in its place, unless another process was faster."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    outside.mkdir()
    before, after = {b"x": TreeFile(b"x\n")}, {b"x/y/z": TreeFile(b"z\n")}

    class FasterCalls(UnsyncedCalls):
        def unlink(self, directory: int, name: bytes) -> None:
            super().unlink(directory, name)
            if name == b"x":
                (root / "x").symlink_to(outside) if entry == "link" else (root / "x").mkdir()

    write_tree(root, before)
    outcomes = states(apply_tree(root, before, after, calls=FasterCalls()))
    assert outcomes == {b"x": "written", b"x/y/z": "refused" if entry == "link" else "written"}
    assert not any(outside.iterdir())
    assert not list(root.rglob(".codebatch-*"))


@pytest.mark.slow
def test_process_that_swaps_a_directory_for_a_link_gets_nothing_written_outside(tmp_path: Path) -> None:
    root, canary = tmp_path / "root", tmp_path / "canary"
    before = {b"d/%d" % number: TreeFile(b"old\n") for number in range(20)}
    after = {b"d/%d" % number: TreeFile(b"new\n") for number in range(25)}
    after |= {b"d/new%d/f/x" % number: TreeFile(b"new\n") for number in range(5)}
    write_tree(root, before)
    outside = {path.removeprefix(b"d/"): file for path, file in before.items()}
    write_tree(canary, outside)
    words = [sys.executable, "-c", _SWAPPER, str(root / "d"), str(canary), str(_SWAPS)]
    swapper = subprocess.Popen(words)
    is_reversed = False
    met: set[str] = set()
    while swapper.poll() is None:
        outcomes = apply_tree(root, before, after, is_reversed=is_reversed, is_partial=True)
        met |= {*states(outcomes).values()}
        is_reversed = not is_reversed
        assert read_tree(canary) == outside
    assert swapper.returncode == 0
    assert met >= {"written", "refused"}
    apply_tree(root, before, after, is_partial=True)
    apply_tree(root, before, after)
    assert read_tree(canary) == outside
    assert read_tree(root) == after
