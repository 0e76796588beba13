"""Sharing: a write-once file has several names, in one batch or in several, by link(2)."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator
from pathlib import Path

from codebatch.errors import StoreError, StoreUntrusted, StoreUnwritable
from codebatch.system.files.files import Files

# Of one file: it has as many names as the file system gives, is another user's, or of another part of the disk.
_NO_LINK = {errno.EMLINK, errno.EPERM, errno.EXDEV}
# Of one name: its directory may not be written, or what has it may not go.
_NO_NAME = {errno.EACCES, errno.EPERM, errno.EROFS}


def hardlink_or_copy(files: Files, source: Path, target: Path) -> bool:
    """Give a write-once file a further name, or where it gets none a copy; False where another file has the name.

    The name is durable after `sync_directory`.
    """
    is_ours = try_link(files, source, target)
    if is_ours is None:
        files.write_atomic(target, files.read(source))
        return True
    return is_ours


def try_link(files: Files, source: Path, target: Path) -> bool | None:
    """`create_exclusive`; None where it is refused for the file alone: it gets no further name, and other files may."""
    try:
        return files.create_exclusive(source, target)
    except (OSError, StoreUntrusted, StoreUnwritable) as error:
        if _number(error) not in _NO_LINK:
            raise
        return None


@contextlib.contextmanager
def ignoring_link_refusals(told: Callable[[StoreError], object] | None = None) -> Iterator[None]:
    """Pass over that a name is refused for itself alone, which is `told`: others may be had. Raises StoreUnwritable."""
    try:
        yield
    except (StoreUntrusted, StoreUnwritable) as error:
        if isinstance(error, StoreUnwritable) and _number(error) not in _NO_NAME:
            raise
        if told is not None:
            told(error)


def _number(error: OSError | StoreUntrusted | StoreUnwritable) -> int | None:
    refused = error if isinstance(error, OSError) else error.__cause__
    return refused.errno if isinstance(refused, OSError) else None
