"""Reading of small files that other programs may have created, in a source tree or outside of it."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_regular(path: Path | bytes, *, bytes_max: int, dir_fd: int | None = None, is_link_followed: bool) -> bytes:
    """Return the bytes of a regular file. Never waits for a writer (FIFO), and never reads without end (device).

    Raises OSError, whose `strerror` is the reason, also if the path is not a regular file, or if the file is longer
    than `bytes_max`.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if is_link_followed else os.O_NOFOLLOW)
    try:
        fd = os.open(path, flags, dir_fd=dir_fd)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENODEV):  # A socket, or a device without a driver.
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
    """Return the inode, size, mtime and ctime (ns) of a file.

    If the content changes, at least one of these values changes. Raises OSError if the file is missing.
    """
    status = os.stat(path)
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _no_regular_file(path: Path | bytes) -> OSError:
    return OSError(errno.EINVAL, "it is not a regular file", path)
