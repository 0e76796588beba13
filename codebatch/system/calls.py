"""The calls of the operating system that files are made of, and nothing else: the seam at which tests inject faults.

`codebatch.testing` has a twin with a disk in memory, and a wrapper that watches, fails or stops any call.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import NamedTuple, Protocol

FILE_MODE = 0o644


class Listed(NamedTuple):
    """A name in a directory and the inode behind it: two names of one inode are one file."""

    name: str
    inode: int


class SystemCalls(Protocol):
    """System calls by their names; every one raises OSError as the system does. Descriptors are close-on-exec."""

    def open(self, path: Path, flags: int) -> int:
        """open(2) with mode 0644."""

    def close(self, fd: int) -> None:
        """close(2)."""

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """write(2): how many bytes were taken, perhaps not all."""

    def pread(self, fd: int, length: int, offset: int) -> bytes:
        """pread(2)."""

    def ftruncate(self, fd: int, length: int) -> None:
        """ftruncate(2)."""

    def fsync(self, fd: int) -> None:
        """fsync(2), of a file or a directory."""

    def fstat(self, fd: int) -> os.stat_result:
        """fstat(2)."""

    def stat(self, path: Path) -> os.stat_result:
        """stat(2)."""

    def listing(self, path: Path) -> list[Listed]:
        """Every name in a directory, in no order: getdents(2)."""

    def mkdir(self, path: Path) -> None:
        """mkdir(2)."""

    def link(self, source: Path, path: Path) -> None:
        """link(2)."""

    def rename(self, source: Path, path: Path) -> None:
        """rename(2)."""

    def unlink(self, path: Path) -> None:
        """unlink(2)."""

    def remove_tree(self, path: Path) -> None:
        """unlink(2) and rmdir(2) of a directory and all below it."""

    def flock(self, fd: int, operation: int) -> None:
        """flock(2)."""


class RealCalls:
    """The operating system's own."""

    close = staticmethod(os.close)
    write = staticmethod(os.write)
    pread = staticmethod(os.pread)
    ftruncate = staticmethod(os.ftruncate)
    fsync = staticmethod(os.fsync)
    fstat = staticmethod(os.fstat)
    stat = staticmethod(os.stat)
    mkdir = staticmethod(os.mkdir)
    link = staticmethod(os.link)
    rename = staticmethod(os.rename)
    unlink = staticmethod(os.unlink)
    flock = staticmethod(fcntl.flock)

    def open(self, path: Path, flags: int) -> int:
        return os.open(path, flags | os.O_CLOEXEC, FILE_MODE)

    def listing(self, path: Path) -> list[Listed]:
        with os.scandir(path) as found:
            return [Listed(item.name, item.inode()) for item in found]

    def remove_tree(self, path: Path) -> None:
        import shutil  # brings bz2 and lzma along, and those who only read remove nothing

        shutil.rmtree(path)
