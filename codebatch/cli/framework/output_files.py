"""Output files of commands: checks of their paths, and atomic writing."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from codebatch.cli.framework.context import CommandContext
from codebatch.errors import InvalidInput
from codebatch.interchange.summary import SUMMARY_BYTES_MAX
from codebatch.model.text.quantities import human_bytes
from codebatch.system.files.files import RealFiles

STANDARD_OUTPUT = "-"


def resolve_output(output: str, example: str) -> Path:
    """Return the path of an output file, with symbolic links resolved.

    Raises InvalidInput if the path cannot be a regular file. The hint has `example`, a command with a valid path.
    """
    target = Path(os.path.realpath(output))
    if not output or target.is_dir():
        raise InvalidInput(f"{output!r} is not a file name", hint=f"for example: {example}")
    # A pipe such as /dev/fd/3 resolves to a path that does not exist. So the type of the unresolved path is checked.
    named = Path(output)
    if named.exists() and not stat.S_ISREG(named.stat().st_mode) and not is_null_device(named):
        command, can_print, _ = example.partition(" -o ")
        hint = f"to write to standard output: {command} -o -" if can_print else f"for example: {example}"
        raise InvalidInput(f"{output!r} is not a regular file", hint=hint)
    if not target.parent.is_dir():
        raise InvalidInput(f"cannot write {target.name!r}: there is no directory {str(target.parent)!r}")
    return target


def is_null_device(path: Path) -> bool:
    """Return whether a path leads to the null device."""
    try:
        status, null = os.stat(path), os.stat(os.devnull)
    except OSError:
        return False
    return stat.S_ISCHR(status.st_mode) and stat.S_ISCHR(null.st_mode) and status.st_rdev == null.st_rdev


def is_standard_stream(path: Path) -> bool:
    """Return whether a path leads to the file into which standard output or standard error is redirected."""
    try:
        return any(os.path.samestat(os.stat(path), os.fstat(number)) for number in (1, 2)) and not is_null_device(path)
    except OSError:
        return False


def write_target(target: Path, data: bytes) -> None:
    """Create or replace a file atomically.

    If it is the null device, write nothing. Otherwise, the device itself would be replaced.
    """
    if not is_null_device(target):
        RealFiles().write_atomic(target, data)


def append_summary(context: CommandContext, target: Path, summary: bytes) -> None:
    """Append a summary of a GitHub job to a file. Other commands may already have written summaries to it."""
    if is_null_device(target):
        return
    with target.open("ab") as file:
        if file.tell() + len(summary) > SUMMARY_BYTES_MAX:
            context.report(f"summary not written: GitHub shows at most {human_bytes(SUMMARY_BYTES_MAX)} in a step")
        else:
            file.write(summary)


def refuse_in_store(target: Path, store_root: Path) -> None:
    """Raise InvalidInput if an output file is inside a store."""
    if target.is_relative_to(os.path.realpath(store_root)):
        raise InvalidInput(f"{str(target)!r} is in the store", hint="choose a file outside the store")
