"""Files that a command writes where it is told: what may be one."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from codebatch.errors import InvalidInput
from codebatch.system.files.files import RealFiles

STANDARD_OUTPUT = "-"


def target_of(output: str, example: str) -> Path:
    """Where a file goes: behind a link, if it is one. Raises InvalidInput where it cannot; `example` is of what can."""
    target = Path(os.path.realpath(output))
    if not output or target.is_dir():
        raise InvalidInput(f"{output!r} is not a file name", hint=f"for example: {example}")
    named = Path(output)  # The path that a pipe in /dev/fd resolves to does not exist.
    if named.exists() and not stat.S_ISREG(named.stat().st_mode) and not is_null_device(named):
        command = example.partition(" -o ")[0]
        raise InvalidInput(f"{output!r} is not a regular file", hint=f"to write to standard output: {command} -o -")
    if not target.parent.is_dir():
        raise InvalidInput(f"no directory {str(target.parent)!r} to write {target.name!r} into")
    return target


def is_null_device(path: Path) -> bool:
    """Whether a path leads to the null device, under whatever name."""
    try:
        found, null = os.stat(path), os.stat(os.devnull)
    except OSError:
        return False
    return stat.S_ISCHR(found.st_mode) and stat.S_ISCHR(null.st_mode) and found.st_rdev == null.st_rdev


def write_target(target: Path, data: bytes) -> None:
    """Create or replace the file in one step. What goes to the null device is not written: no node may be replaced."""
    if not is_null_device(target):
        RealFiles().write_atomic(target, data)


def refuse_in_store(target: Path, store_root: Path) -> None:
    """Raise InvalidInput for a file in a store, which has none but its own."""
    if target.is_relative_to(os.path.realpath(store_root)):
        raise InvalidInput(f"{str(target)!r} is in the store", hint="choose a file outside the store")
