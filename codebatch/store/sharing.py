"""Sharing of write-once files, within a batch or between batches, by hard links."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator
from pathlib import Path

from codebatch.errors import StoreError, StoreUntrusted, StoreUnwritable
from codebatch.system.files.files import StoreFiles

# Errors that concern one source file: it has the maximum number of links, another owner, or is on another file system.
_LINK_REFUSALS = {errno.EMLINK, errno.EPERM, errno.EXDEV}
# Errors that concern one target name: its directory is not writable, or the existing file may not be replaced.
_WRITE_REFUSALS = {errno.EACCES, errno.EPERM, errno.EROFS}


def hardlink_or_copy(files: StoreFiles, source: Path, target: Path) -> bool:
    """Make a hard link to a write-once file, or a copy if no link is possible.

    Return False if the target already exists. The name is durable after `sync_directory`.
    """
    is_linked = try_link(files, source, target)
    if is_linked is None:
        files.write_atomic(target, files.read(source))
        return True
    return is_linked


def try_link(files: StoreFiles, source: Path, target: Path) -> bool | None:
    """Call `Files.create_exclusive`, which links `source` to `target`.

    Return None if `source` cannot get a further link.

    Then a link to another source may still succeed.
    """
    try:
        return files.create_exclusive(source, target)
    except (OSError, StoreUntrusted, StoreUnwritable) as error:
        if _error_number(error) not in _LINK_REFUSALS:
            raise
        return None


@contextlib.contextmanager
def ignoring_link_refusals(on_refusal: Callable[[StoreError], object] | None = None) -> Iterator[None]:
    """Ignore an error within the context if it concerns only one target name, and pass it to `on_refusal`.

    The caller can continue with other names. Any other StoreUnwritable is raised.
    """
    try:
        yield
    except (StoreUntrusted, StoreUnwritable) as error:
        if isinstance(error, StoreUnwritable) and _error_number(error) not in _WRITE_REFUSALS:
            raise
        if on_refusal is not None:
            on_refusal(error)


def _error_number(error: OSError | StoreUntrusted | StoreUnwritable) -> int | None:
    cause = error if isinstance(error, OSError) else error.__cause__
    return cause.errno if isinstance(cause, OSError) else None
