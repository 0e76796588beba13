"""Files that a command writes where it is told: what may be one."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from codebatch.errors import InvalidInput

STANDARD_OUTPUT = "-"


def target_of(output: str, example: str) -> Path:
    """Where a file goes: behind a link, if it is one. Raises InvalidInput where it cannot; `example` is of what can."""
    target = Path(os.path.realpath(output))
    if not output or target.is_dir():
        raise InvalidInput(f"{output!r} is no name of a file", hint=f"such as: {example}")
    if not target.parent.is_dir():
        raise InvalidInput(f"there is no directory {str(target.parent)!r} to write {target.name!r} into")
    if target.exists() and not stat.S_ISREG(target.stat().st_mode):
        command = example.partition(" -o ")[0]
        raise InvalidInput(f"{output!r} is no plain file", hint=f"standard output is: {command} -o -")
    return target


def refuse_in_store(target: Path, store_root: Path) -> None:
    """Raise InvalidInput for a file in a store, which has none but its own."""
    if target.is_relative_to(os.path.realpath(store_root)):
        raise InvalidInput(f"{str(target)!r} is in the store", hint="name a file outside of it")
