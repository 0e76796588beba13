"""Files for a program: whatever it does to them, nothing outside their directory is written or removed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch_workers.programs.temporary_files import TemporaryFiles
from tests.support.command_line import UNPRIVILEGED, permissions_bind, write


def _tree(tmp_path: Path) -> tuple[TemporaryFiles, Path]:
    """Return files in a directory, and the directory. Files of the user with equal names are in another directory."""
    write(tmp_path / "user" / "src" / "a.txt", "of the user")
    directory = tmp_path / "call"
    files = TemporaryFiles(os.fsencode(directory))
    files.write_file(b"tree/src/a.txt", b"copy")
    files.make_link(b"tree/lib", os.fsencode(tmp_path / "user"))
    return files, directory


def _replace_by_link(path: Path, target: Path) -> None:
    shutil.rmtree(path)
    path.symlink_to(target)


@pytest.mark.parametrize(
    "change",
    [
        lambda call, _: write(call / "tree" / "more" / "b.txt", "new"),
        lambda call, _: shutil.rmtree(call / "tree"),
        lambda call, _: shutil.rmtree(call),
        lambda call, user: _replace_by_link(call / "tree" / "src", user / "src"),
        lambda call, user: _replace_by_link(call / "tree", user),
        _replace_by_link,
        lambda call, user: (call / "tree" / "src" / "deep").symlink_to(user),
    ],
    ids=["adds", "removes tree", "removes all", "links src", "links tree", "links all", "adds link"],
)
def test_files_of_the_user_survive_whatever_a_program_does(
    tmp_path: Path, change: Callable[[Path, Path], None]
) -> None:
    files, directory = _tree(tmp_path)
    change(directory, tmp_path / "user")
    files.remove()
    assert not os.path.lexists(directory)
    assert (tmp_path / "user" / "src" / "a.txt").read_text() == "of the user"


def test_nothing_is_written_through_a_link_or_below_a_file(tmp_path: Path) -> None:
    files, _ = _tree(tmp_path)
    with pytest.raises(FileExistsError):
        files.write_file(b"tree/lib/src/b.txt", b"x")
    with pytest.raises(FileExistsError):
        files.make_link(b"tree/lib/link", b"a")
    with pytest.raises(FileExistsError):
        files.write_file(b"tree/src/a.txt/b.txt", b"x")
    with pytest.raises(FileExistsError):
        files.write_file(b"tree/src", b"x")
    files.write_file(b"tree/src/a.txt", b"is kept")
    assert (tmp_path / "call" / "tree" / "src" / "a.txt").read_bytes() == b"copy"
    assert sorted(os.listdir(tmp_path / "user")) == ["src"]
    assert os.listdir(tmp_path / "user" / "src") == ["a.txt"]


def test_older_files_in_the_directory_are_removed_first(tmp_path: Path) -> None:
    _, directory = _tree(tmp_path)
    TemporaryFiles(os.fsencode(directory))
    assert os.listdir(directory) == []
    os.rmdir(directory)
    directory.symlink_to(tmp_path / "user")
    TemporaryFiles(os.fsencode(directory))
    assert (tmp_path / "user" / "src" / "a.txt").exists()


@permissions_bind
def test_directories_without_permissions_are_removed(tmp_path: Path) -> None:
    code = f"""
import os, pathlib
from codebatch_workers.programs.temporary_files import TemporaryFiles
files = TemporaryFiles({os.fsencode(tmp_path / "call")!r})
files.write_file(b"tree/a.txt", b"")
deep = pathlib.Path({str(tmp_path)!r}, "call/tree/b/c")
deep.mkdir(parents=True)
(deep / "d").touch()
(deep / "link").symlink_to({str(tmp_path)!r})
for path in (deep, deep.parent, deep.parent.parent, deep.parent.parent.parent):
    path.chmod(0)
files.remove()
"""
    tmp_path.chmod(0o755)
    subprocess.run([*UNPRIVILEGED, sys.executable, "-c", code], check=True)
    assert os.listdir(tmp_path) == []
    assert tmp_path.stat().st_mode & 0o777 == 0o755
