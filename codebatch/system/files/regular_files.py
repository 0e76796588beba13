"""Small files that somebody else may have made: of a tree, or beside it."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_regular(path: Path | bytes, *, bytes_max: int, dir_fd: int | None = None, is_link_followed: bool) -> bytes:
    """The bytes of a regular file. Never waits for a writer (fifo) and never reads without end (device).

    Raises OSError; its `strerror` also says that it is no regular file, or that it is longer than `bytes_max`.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if is_link_followed else os.O_NOFOLLOW)
    try:
        fd = os.open(path, flags, dir_fd=dir_fd)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENODEV):  # a socket, a device without a driver
            raise _no_regular_file(path) from error
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise _no_regular_file(path)
    with open(fd, "rb") as file:
        data = file.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise OSError(errno.EFBIG, f"it is longer than {bytes_max} bytes", path)
    return data


def file_fingerprint(path: str) -> tuple[int, ...]:
    """What the system says of a file, which a change of its content changes too. Raises OSError where it is gone."""
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _no_regular_file(path: Path | bytes) -> OSError:
    return OSError(errno.EINVAL, "it is not a regular file", path)
