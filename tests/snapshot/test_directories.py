"""Tests of directories: they are opened below the base, at any depth, with few descriptors."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codebatch.model.nearest_directories import DirectoryMap
from codebatch.snapshotting.directories import DirectoryDescriptors

DEPTH = 300


@pytest.fixture
def deep(tmp_path: Path) -> Path:
    """A chain of directories, each with a directory `x` next to the next one."""
    fd = os.open(tmp_path, os.O_RDONLY)
    for _ in range(DEPTH):
        os.mkdir("x", dir_fd=fd)
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    return tmp_path


def test_directories_are_entered_in_any_order_with_few_descriptors(deep: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    levels = [b"/".join([b"d"] * depth) for depth in range(1, DEPTH)]
    side_directories = [level + b"/x" for level in levels]
    with DirectoryDescriptors(bytes(deep)) as directories:
        for order in (
            levels,
            levels[::-1],
            side_directories,
            side_directories[::-1],
            levels[::7] + side_directories[::-11],
        ):
            for directory in order:
                assert os.path.samestat(os.fstat(directories.open_directory(directory)), _stat(deep, directory))
        assert len(os.listdir("/dev/fd")) - before < 140
    assert len(os.listdir("/dev/fd")) == before


def _stat(top: Path, directory: bytes) -> os.stat_result:
    return os.stat(bytes(top) + b"/" + directory)


@pytest.mark.parametrize("path", [b"..", b"a/..", b"a/../..", b".", b"a/.", b"a//b", b"/etc", b"a/"])
def test_unsafe_path_components_are_not_entered(tmp_path: Path, path: bytes) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    with DirectoryDescriptors(bytes(tmp_path)) as directories:
        for _ in range(2):
            with pytest.raises(FileNotFoundError):
                directories.open_directory(path)
            directories.open_directory(b"a")
        assert os.path.samestat(os.fstat(directories.open_directory(b"a/b")), (tmp_path / "a" / "b").stat())


def test_nearest_value_takes_precedence() -> None:
    values: DirectoryMap[int] = DirectoryMap()
    assert values.values_above(b"a/b/c") == ()
    values.put(b"a", 1)
    assert values.values_above(b"a/b/c") == (1,)
    assert values.values_above(b"a") == ()
    values.put(b"", 0)
    values.put(b"a/b", 2)
    assert values.values_above(b"a/b/c") == (2, 1, 0)
    assert values.values_above(b"b") == (0,)
    values.put(b"a", 3)
    assert values.values_above(b"a/b/c") == (2, 3, 0)
