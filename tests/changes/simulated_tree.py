"""The calls of `apply` on a disk in memory, or through calls that a test watches and fails.

Descriptors of directories are paths here, so nothing is known about links: tests of those use a real disk.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from codebatch.system.files.system_calls import SystemCalls
from tests.support.disk import Disk


class SimulatedTreeCalls:
    """TreeCalls over SystemCalls of a disk, which may be watched. `sync` makes the disk durable.

    Permissions are not simulated. With `ignores_case`, a name leads to any name that is equal without case.
    """

    def __init__(
        self,
        disk: Disk,
        calls: SystemCalls,
        *,
        sync: Callable[[], None] | None = None,
        free: int = 1 << 40,
        ignores_case: bool = False,
    ) -> None:
        self._disk = disk
        self._calls = calls
        self._sync = sync or disk.sync
        self._free = free
        self._ignores_case = ignores_case
        self._paths: dict[int, Path] = {}

    def open_root(self, path: bytes) -> int:
        return self._opened(Path(os.fsdecode(path)), os.O_RDONLY | os.O_DIRECTORY)

    def open_directory(self, parent: int, name: bytes) -> int:
        return self._opened(self._path(parent, name), os.O_RDONLY | os.O_DIRECTORY)

    def open_file(self, directory: int, name: bytes) -> int:
        return self._opened(self._path(directory, name), os.O_RDONLY)

    def create(self, directory: int, name: bytes, mode: int) -> int:
        return self._opened(self._path(directory, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL)

    def symlink(self, directory: int, target: bytes, name: bytes) -> None:
        self._calls.symlink(os.fsdecode(target), self._path(directory, name))

    def read_link(self, directory: int, name: bytes) -> bytes:
        return self._disk.read_link(self._path(directory, name))

    def close(self, fd: int) -> None:
        del self._paths[fd]
        self._calls.close(fd)

    def names(self, directory: int) -> list[bytes]:
        return list(map(os.fsencode, self._calls.listing(self._paths[directory])))

    def status(self, directory: int, name: bytes) -> os.stat_result:
        return self._calls.stat(self._path(directory, name))

    def fstat(self, fd: int) -> os.stat_result:
        return self._calls.fstat(fd)

    def can_write(self, directory: int, name: bytes) -> bool:
        return True

    def free_bytes(self, directory: int) -> int:
        return self._free

    def pread(self, fd: int, length: int, offset: int) -> bytes:
        return self._calls.pread(fd, length, offset)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        return self._calls.write(fd, data)

    def copy_status(self, source: int, target: int, mode: int) -> None:
        assert source in self._paths
        assert target in self._paths

    def rename(self, source_directory: int, source: bytes, directory: int, target: bytes) -> None:
        self._calls.rename(self._path(source_directory, source), self._path(directory, target))

    def link(self, source_directory: int, source: bytes, directory: int, target: bytes) -> None:
        self._calls.link(self._path(source_directory, source), self._path(directory, target))

    def unlink(self, directory: int, name: bytes) -> None:
        self._calls.unlink(self._path(directory, name))

    def mkdir(self, directory: int, name: bytes) -> None:
        self._calls.mkdir(self._path(directory, name))

    def rmdir(self, directory: int, name: bytes) -> None:
        path = self._path(directory, name)
        if self._calls.listing(path):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(path))
        self._calls.remove_tree(path)

    def sync(self) -> None:
        self._sync()

    def try_lock(self, fd: int) -> bool:
        try:
            self._calls.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno != errno.EWOULDBLOCK:
                raise
            return False
        return True

    def _opened(self, path: Path, flags: int) -> int:
        fd = self._calls.open(path, flags)
        self._paths[fd] = path
        return fd

    def _path(self, directory: int, name: bytes) -> Path:
        above, text = self._paths[directory], os.fsdecode(name)
        if self._ignores_case:
            names = self._calls.listing(above)
            text = next((other for other in names if other.casefold() == text.casefold()), text)
        return above / text
