"""Below a confined root, no link is followed, whatever is done to a path."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch.system.files.disk_usage import iter_files
from codebatch.system.files.system_calls import RealCalls
from tests.bad_input.conftest import manifest
from tests.support.command_line import write


def test_confined_root_follows_no_link(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(tmp_path / "outside" / "file", "x")
    root.mkdir()
    (root / "directory").mkdir()
    (root / "link").symlink_to("../outside")
    (root / "file").symlink_to("../outside/file")
    before = manifest(tmp_path)
    calls = RealCalls()
    calls.confine(root)
    tries: list[Callable[[], object]] = [
        lambda: calls.open(root / "file", os.O_RDONLY),
        lambda: calls.open(root / "link" / "file", os.O_RDONLY),
        lambda: calls.open(root / "link" / "new", os.O_WRONLY | os.O_CREAT),
        lambda: calls.open(root / "link", os.O_RDONLY | os.O_DIRECTORY),
        lambda: calls.listing(root / "link"),
        lambda: calls.stat(root / "link" / "file"),
        lambda: calls.mkdir(root / "link" / "new"),
        lambda: calls.link(root / "link" / "file", root / "new"),
        lambda: calls.link(root / "file", root / "link" / "new"),
        lambda: calls.rename(root / "link" / "file", root / "new"),
        lambda: calls.rename(root / "file", root / "link" / "new"),
        lambda: calls.unlink(root / "link" / "file"),
        lambda: calls.remove_tree(root / "link"),
        lambda: calls.symlink("x", root / "link" / "new"),
        lambda: calls.stat(root / "directory" / ".." / ".." / "outside"),
        lambda: calls.unlink(root / ".." / "outside" / "file"),
        lambda: calls.open(root / "directory" / os.fspath(tmp_path / "outside" / "file"), os.O_RDONLY),
    ]
    for number, attempt in enumerate(tries):
        with pytest.raises(OSError, match=r"symbolic links|cross-device"):
            print(number, attempt())
    assert manifest(tmp_path) == before
    assert sum(found.st_size for _, found in iter_files(root)) < 100


def test_deep_tree_is_removed_without_following_links(tmp_path: Path) -> None:
    write(tmp_path / "outside" / "file", "x")
    calls = RealCalls()
    calls.confine(tmp_path / "root")
    top = tmp_path / "root" / "top"
    top.mkdir(parents=True)
    here = os.getcwd()
    try:
        os.chdir(top)
        for _ in range(2000):
            os.symlink(tmp_path / "outside", "link")
            os.mkdir("below")
            os.chdir("below")
    finally:
        os.chdir(here)
    calls.remove_tree(top)
    assert [*(tmp_path / "root").iterdir()] == []
    assert (tmp_path / "outside" / "file").read_text() == "x"
