"""An attempt finds its directory empty, whatever the one before did with its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch.system.clock import wall_ns
from codebatch.system.files import RealFiles
from codebatch_workers.commands.scratch import TICK_NS, Scratch
from tests.commands.batches import wait_until


def _nothing(_: Path) -> None:
    pass


def _writes(directory: Path) -> None:
    (directory / "question").touch()


def _hides(directory: Path) -> None:
    (directory / ".kept").touch()


def _forbids(directory: Path) -> None:
    directory.chmod(0o500)


def _removes(directory: Path) -> None:
    directory.rmdir()


def _makes_the_next(directory: Path) -> None:
    (directory.with_name("2")).mkdir()
    (directory.with_name("2") / "own").touch()


@pytest.mark.parametrize("is_old", [True, False])
@pytest.mark.parametrize("is_left_alone", [True, False])
@pytest.mark.parametrize("act", [_nothing, _writes, _hides, _forbids, _removes])
def test_the_next_attempt_has_an_empty_directory_of_its_own(
    tmp_path: Path, act: Callable[[Path], None], is_left_alone: bool, is_old: bool
) -> None:
    """Be it that its time of change tells what happened, or that it is too young for that."""
    scratch = Scratch(RealFiles(), tmp_path, wall_ns)
    first = scratch.directory(1)
    scratch.make(first)
    if is_old:
        wait_until(lambda: wall_ns() - first.stat().st_ctime_ns > 2 * TICK_NS)
        scratch.end(first, is_left_alone=True)
        first = scratch.directory(1)
        scratch.make(first)
    assert scratch.is_untouched(first) == is_old
    mode, inode = first.stat().st_mode, first.stat().st_ino
    held = os.open(first, os.O_RDONLY)  # Nothing else gets its inode.
    act(first)
    assert scratch.is_untouched(first) == (is_old and act is _nothing)
    scratch.end(first, is_left_alone=is_left_alone)
    second = scratch.directory(2)
    scratch.make(second)
    os.close(held)
    assert first == second or not first.exists()
    assert list(second.iterdir()) == []
    assert second.stat().st_mode == mode
    assert (second.stat().st_ino == inode) == (act is _nothing and is_left_alone)


def test_who_made_the_directory_of_the_next_attempt_stops_nobody(tmp_path: Path) -> None:
    scratch = Scratch(RealFiles(), tmp_path, wall_ns)
    scratch.make(scratch.directory(1))
    _makes_the_next(scratch.directory(1))
    scratch.end(scratch.directory(1), is_left_alone=True)
    scratch.make(scratch.directory(2))
    assert scratch.directory(2).is_dir()
