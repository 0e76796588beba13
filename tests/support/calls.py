"""Intercepted system calls: a test can count, record, delay or fail each call, or end the process there."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, TypeVar

from codebatch.system.files.system_calls import SHARED_MODE, SystemCalls, open_and_sync_directory

Value = TypeVar("Value")

WRITES = frozenset(
    {"create", "write", "ftruncate", "fsync", "mkdir", "link", "symlink", "rename", "unlink", "remove_tree"},
)
"""Calls that change a disk, or its state after a power loss."""


class Operation(NamedTuple):
    """A call that is about to be made. `create` is an open that may create its file."""

    call: str
    path: Path

    @property
    def is_write(self) -> bool:
        """True if the call changes a disk, or its state after a power loss."""
        return self.call in WRITES


class Fate(NamedTuple):
    """A failure of a call: `error` is raised after the call was done by this share. 0 means not at all, 1 completely.

    Only write(2) can be done in part. A lost reply is an error with share 1.
    """

    error: BaseException
    share: float = 0.0


Watch = Callable[[Operation], Fate | None]


class WatchedCalls:
    """A wrapper that passes each call to `watch` first, which may fail it. It has many methods: one for each call."""

    def __init__(self, calls: SystemCalls, watch: Watch) -> None:
        self._calls = calls
        self._watch = watch
        self._paths: dict[int, Path] = {}

    def confine(self, root: Path) -> None:
        self._calls.confine(root)

    def keeping_open(self, *directories: Path) -> AbstractContextManager[None]:
        return self._calls.keeping_open(*directories)

    def open(self, path: Path | str, flags: int) -> int:
        path = Path(path)
        fd = self._intercept("create" if flags & os.O_CREAT else "open", path, lambda: self._calls.open(path, flags))
        self._paths[fd] = path
        return fd

    def close(self, fd: int) -> None:
        """Close a descriptor. Not intercepted: it changes nothing, and a dead process closes all descriptors."""
        self._paths.pop(fd, None)
        self._calls.close(fd)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        fate = self._watch(Operation("write", self._paths[fd]))
        if fate is None:
            return self._calls.write(fd, data)
        taken = int(len(data) * fate.share)
        if taken:
            self._calls.write(fd, data[:taken])
        raise fate.error

    def pread(self, fd: int, length: int, offset: int) -> bytes:
        return self._intercept("pread", self._paths[fd], lambda: self._calls.pread(fd, length, offset))

    def ftruncate(self, fd: int, length: int) -> None:
        self._intercept("ftruncate", self._paths[fd], lambda: self._calls.ftruncate(fd, length))

    def fsync(self, fd: int) -> None:
        self._intercept("fsync", self._paths[fd], lambda: self._calls.fsync(fd))

    def sync_directory(self, path: Path) -> None:
        open_and_sync_directory(self, path)

    def fstat(self, fd: int) -> os.stat_result:
        return self._calls.fstat(fd)

    def stat(self, path: Path | str) -> os.stat_result:
        path = Path(path)
        return self._intercept("stat", path, lambda: self._calls.stat(path))

    def listing(self, path: Path) -> dict[str, int]:
        return self._intercept("listing", path, lambda: self._calls.listing(path))

    def lengths(self, path: Path) -> dict[str, int]:
        return self._intercept("listing", path, lambda: self._calls.lengths(path))

    def mkdir(self, path: Path, mode: int = SHARED_MODE) -> None:
        self._intercept("mkdir", path, lambda: self._calls.mkdir(path, mode))

    def link(self, source: Path | str, path: Path | str) -> None:
        source, path = Path(source), Path(path)
        self._intercept("link", path, lambda: self._calls.link(source, path))

    def symlink(self, target: str, path: Path) -> None:
        self._intercept("symlink", path, lambda: self._calls.symlink(target, path))

    def rename(self, source: Path, path: Path) -> None:
        self._intercept("rename", path, lambda: self._calls.rename(source, path))

    def unlink(self, path: Path | str) -> None:
        path = Path(path)
        self._intercept("unlink", path, lambda: self._calls.unlink(path))

    def remove_tree(self, path: Path) -> None:
        self._intercept("remove_tree", path, lambda: self._calls.remove_tree(path))

    def flock(self, fd: int, operation: int) -> None:
        self._intercept("flock", self._paths[fd], lambda: self._calls.flock(fd, operation))

    def _intercept(self, call: str, path: Path, act: Callable[[], Value]) -> Value:
        fate = self._watch(Operation(call, path))
        if fate is None:
            return act()
        if fate.share:
            act()
        raise fate.error
