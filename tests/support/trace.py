"""Traces of all calls of several processes that change a disk, in order, and their replay on simulated disks.

A trace is a file of JSON lines. A process holds the lock of the file from before a call until the call is recorded. So
the order of lines is the order of calls. A replay up to any line, without state that was not synced, results in the
disk after a power loss at that point.
"""

from __future__ import annotations

import fcntl
import functools
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import msgspec

from codebatch.system.files.system_calls import SHARED_MODE, SystemCalls, open_and_sync_directory
from tests.support.disk import Disk, DiskCalls


class TracedCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A completed call. `process` and `fd` identify the open file of a write. `number` is a size, or flags."""

    process: int
    call: str
    path: str = ""
    target: str = ""
    fd: int = -1
    number: int = 0
    data: bytes = b""


class TracedCalls:
    """A wrapper that records calls in a trace file. It has many methods: one for each call."""

    def __init__(self, calls: SystemCalls, trace: Path) -> None:
        self._calls = calls
        self._trace = os.open(trace, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def confine(self, root: Path) -> None:
        self._calls.confine(root)

    def keeping_open(self, *directories: Path) -> AbstractContextManager[None]:
        return self._calls.keeping_open(*directories)

    def open(self, path: Path | str, flags: int) -> int:
        with self._locked():
            fd = self._calls.open(path, flags)
            self._append("open", path=str(path), number=flags, fd=fd)
        return fd

    def close(self, fd: int) -> None:
        with self._locked():
            self._calls.close(fd)
            self._append("close", fd=fd)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        with self._locked():
            taken = self._calls.write(fd, data)
            self._append("write", fd=fd, data=bytes(data[:taken]))
        return taken

    def pread(self, fd: int, length: int, offset: int) -> bytes:
        return self._calls.pread(fd, length, offset)

    def ftruncate(self, fd: int, length: int) -> None:
        self._record_call(lambda: self._calls.ftruncate(fd, length), "ftruncate", fd=fd, number=length)

    def fsync(self, fd: int) -> None:
        self._record_call(lambda: self._calls.fsync(fd), "fsync", fd=fd)

    def sync_directory(self, path: Path) -> None:
        open_and_sync_directory(self, path)

    def fstat(self, fd: int) -> os.stat_result:
        return self._calls.fstat(fd)

    def stat(self, path: Path | str) -> os.stat_result:
        return self._calls.stat(path)

    def listing(self, path: Path) -> dict[str, int]:
        return self._calls.listing(path)

    def lengths(self, path: Path) -> dict[str, int]:
        return self._calls.lengths(path)

    def mkdir(self, path: Path, mode: int = SHARED_MODE) -> None:
        self._record_call(lambda: self._calls.mkdir(path, mode), "mkdir", path=str(path))

    def link(self, source: Path | str, path: Path | str) -> None:
        self._record_call(lambda: self._calls.link(source, path), "link", path=str(source), target=str(path))

    def symlink(self, target: str, path: Path) -> None:
        self._record_call(lambda: self._calls.symlink(target, path), "symlink", path=target, target=str(path))

    def rename(self, source: Path, path: Path) -> None:
        self._record_call(lambda: self._calls.rename(source, path), "rename", path=str(source), target=str(path))

    def unlink(self, path: Path | str) -> None:
        self._record_call(lambda: self._calls.unlink(path), "unlink", path=str(path))

    def remove_tree(self, path: Path) -> None:
        self._record_call(lambda: self._calls.remove_tree(path), "remove_tree", path=str(path))

    def flock(self, fd: int, operation: int) -> None:
        self._calls.flock(fd, operation)

    def _record_call(
        self,
        act: Callable[[], None],
        call: str,
        *,
        path: str = "",
        target: str = "",
        fd: int = -1,
        number: int = 0,
    ) -> None:
        with self._locked():
            act()
            self._append(call, path=path, target=target, fd=fd, number=number)

    def _append(
        self, call: str, *, path: str = "", target: str = "", fd: int = -1, number: int = 0, data: bytes = b""
    ) -> None:
        line = TracedCall(process=os.getpid(), call=call, path=path, target=target, fd=fd, number=number, data=data)
        os.write(self._trace, msgspec.json.encode(line) + b"\n")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        fcntl.flock(self._trace, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._trace, fcntl.LOCK_UN)


def read_trace(trace: Path) -> list[TracedCall]:
    """Return the calls of a trace, in order."""
    return [msgspec.json.decode(line, type=TracedCall) for line in trace.read_bytes().splitlines()]


# Cached because tests replay a trace repeatedly, each time one call further.
_path = functools.lru_cache(maxsize=10_000)(Path)


def replay(disk: Disk, calls: Iterable[TracedCall]) -> None:
    """Replay the calls of a trace on a disk."""
    processes: dict[int, DiskCalls] = {}
    descriptors: dict[tuple[int, int], int] = {}
    for call in calls:
        process = processes.get(call.process) or processes.setdefault(call.process, disk.calls())
        fd = descriptors.get((call.process, call.fd), -1)
        path, target = _path(call.path), _path(call.target)
        match call.call:
            case "open":
                descriptors[call.process, call.fd] = process.open(path, call.number)
            case "close":
                process.close(fd)
            case "write":
                process.write(fd, call.data)
            case "ftruncate":
                process.ftruncate(fd, call.number)
            case "fsync":
                process.fsync(fd)
            case "mkdir" | "unlink" | "remove_tree":
                getattr(process, call.call)(path)
            case "symlink":
                process.symlink(call.path, target)
            case "link" | "rename":
                getattr(process, call.call)(path, target)
            case unknown:
                raise ValueError(f"the trace has an unknown call {unknown!r}")
