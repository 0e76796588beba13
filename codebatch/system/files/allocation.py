"""Hints to file systems about where directories are allocated."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from pathlib import Path

_GET_FLAGS = 0x80086601
_SET_FLAGS = 0x40086602
_TOP_DIRECTORY_FLAG = 0x00020000
"""FS_IOC_GETFLAGS, FS_IOC_SETFLAGS and FS_TOPDIR_FL of <linux/fs.h>, see ioctl_iflags(2)."""


def spread_subdirectories(directory: Path) -> None:
    """Let the file system allocate the subdirectories of a directory far apart (`T` in chattr(1)). Only ext4 does this.

    For some minutes, ext4 does not use the inodes of removed files again. It skips them one by one. So if a tree of
    thousands of files was removed, writing another one in the same place takes ten times as long.
    """
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            (flags,) = struct.unpack("i", fcntl.ioctl(descriptor, _GET_FLAGS, bytes(4)))
            fcntl.ioctl(descriptor, _SET_FLAGS, struct.pack("i", flags | _TOP_DIRECTORY_FLAG))
        finally:
            os.close(descriptor)
