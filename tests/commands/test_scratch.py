"""Tests of the directory of an attempt: it is new, whatever the attempt before did in its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch.system.clock import wall_ns
from codebatch.system.files.files import RealFiles
from codebatch_workers.commands.scratch import EMPTY_FILE, FILE_CLOCK_TICK_NS, NO_ROWS_FILE, AttemptDirectories
from tests.support.work_batches import wait_until


def _do_nothing(_: Path) -> None:
    pass


def _create_file(directory: Path) -> None:
    (directory / "question").touch()


def _create_hidden_file(directory: Path) -> None:
    (directory / ".kept").touch()


def _remove_write_permission(directory: Path) -> None:
    directory.chmod(0o500)


def _remove_directory(directory: Path) -> None:
    shutil.rmtree(directory)


def _remove_file(directory: Path) -> None:
    (directory / NO_ROWS_FILE).unlink()


def _append_to_file(directory: Path) -> None:
    (directory / EMPTY_FILE).write_bytes(b"more")


def _truncate_file(directory: Path) -> None:
    os.truncate(directory / NO_ROWS_FILE, 0)


def _create_next_directory(directory: Path) -> None:
    (directory.with_name("2")).mkdir()
    (directory.with_name("2") / "own").touch()


_FILE_CHANGES = (_remove_file, _append_to_file, _truncate_file)


@pytest.mark.parametrize("is_old", [True, False])
@pytest.mark.parametrize("is_left_alone", [True, False])
@pytest.mark.parametrize(
    "act", [_do_nothing, _create_file, _create_hidden_file, _remove_write_permission, _remove_directory, *_FILE_CHANGES]
)
def test_next_attempt_has_a_new_directory(
    tmp_path: Path, act: Callable[[Path], None], is_left_alone: bool, is_old: bool
) -> None:
    """The change time of the directory may reveal what happened, or may be too recent for that."""
    scratch = AttemptDirectories(RealFiles(), tmp_path, wall_ns)
    first = scratch.attempt_path(1)
    scratch.make(first)
    if is_old:
        wait_until(lambda: wall_ns() - first.stat().st_ctime_ns > 2 * FILE_CLOCK_TICK_NS)
        scratch.end_attempt(first, has_no_processes=True)
        first = scratch.attempt_path(1)
        scratch.make(first)
    assert scratch.is_untouched(first) == is_old
    mode, inode = first.stat().st_mode, first.stat().st_ino
    descriptor = os.open(first, os.O_RDONLY)  # While it is open, no other directory gets its inode.
    act(first)
    assert scratch.is_untouched(first) == (is_old and act in (_do_nothing, _append_to_file, _truncate_file))
    scratch.end_attempt(first, has_no_processes=is_left_alone)
    second = scratch.attempt_path(2)
    scratch.make(second)
    os.close(descriptor)
    assert first == second or not first.exists()
    assert {path.name: path.read_bytes() for path in second.iterdir()} == {EMPTY_FILE: b"", NO_ROWS_FILE: b"[]\n"}
    assert second.stat().st_mode == mode
    assert (second.stat().st_ino == inode) == (act is _do_nothing and is_left_alone)


def test_existing_directory_of_the_next_attempt_is_tolerated(tmp_path: Path) -> None:
    scratch = AttemptDirectories(RealFiles(), tmp_path, wall_ns)
    scratch.make(scratch.attempt_path(1))
    _create_next_directory(scratch.attempt_path(1))
    scratch.end_attempt(scratch.attempt_path(1), has_no_processes=True)
    scratch.make(scratch.attempt_path(2))
    assert scratch.attempt_path(2).is_dir()
