"""A disk in memory that distinguishes the state that processes see from the state after a power loss.

Only this is durable, as POSIX requires: the bytes of a file up to its last fsync(2), and a name up to the last fsync(2)
of its directory. A synced file in a directory that was not synced loses its name. A rename within one directory is one
change: after a power loss either the old or the new name exists, never both or neither. The whole disk behaves like a
confined root: no symbolic link is followed.

The module is one file, long as it is, because it contains the disk and all calls that reach it.
"""

from __future__ import annotations

import errno
import fcntl
import functools
import os
import random
import stat
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from codebatch.system.files.system_calls import FILE_MODE, SHARED_MODE

DIRECTORY_MODE = 0o755


@dataclass(eq=False, slots=True)
class _File:
    """A file. `pending` are the writes since the last fsync: bytes at an offset, or a new size."""

    number: int
    data: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes] | int] = field(default_factory=list)
    locks: dict[int, bool] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class _Link(_File):
    """A symbolic link. Its target is its data, and becomes durable with its name."""


@dataclass(eq=False, slots=True)
class _Directory:
    """A directory. `pending` are the changes of names since the last fsync. Changes in one element are atomic."""

    number: int
    names: dict[str, _Node] = field(default_factory=dict)
    durable: dict[str, _Node] = field(default_factory=dict)
    pending: list[dict[str, _Node | None]] = field(default_factory=list)
    locks: dict[int, bool] = field(default_factory=dict)


_Node = _File | _Directory


@dataclass(slots=True)
class _Open:
    node: _Node
    is_append: bool
    position: int = 0


class Disk:
    """One file system for any number of processes, each with its own `calls`. Not thread-safe."""

    def __init__(self) -> None:
        self._nodes = 1
        self._descriptors = 2
        self._root = _Directory(1)

    def calls(self) -> DiskCalls:
        """Return the system calls of a new process."""
        return DiskCalls(self)

    def sync(self) -> None:
        """Make the whole state durable: sync(2)."""
        _sync(self._root)

    def lose_power(self, chance: random.Random | None = None) -> None:
        """Discard state that is not durable. All processes that use the disk must have exited.

        With `chance`, a random part of it survives: the first changes, any of them, or a file's new length filled with
        zeros. A real disk may write data before it is synced, in any order.
        """
        _discard_pending(self._root, chance)

    def has(self, path: Path) -> bool:
        """Return whether something exists at a path."""
        try:
            self.find(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def read_link(self, path: Path) -> bytes:
        """Return the target of a symbolic link."""
        node = self.find(path)
        assert isinstance(node, _Link), path
        return bytes(node.data)

    def export(self, source: Path, target: Path) -> None:
        """Copy a directory of this disk to the real disk, including hard links. `target` must not exist."""
        _export(self.find(source), target, {})

    def find(self, path: Path) -> _Node:
        """Return the node at a path. Raises FileNotFoundError, NotADirectoryError."""
        node: _Node = self._root
        for part in path.parts[1:]:
            if isinstance(node, _File):
                raise _os_error(_not_directory_errno(node), path)
            below = node.names.get(part)
            if below is None:
                raise _os_error(errno.ENOENT, path)
            node = below
        return node

    def directory(self, path: Path) -> _Directory:
        """Return the directory at a path. Raises FileNotFoundError, NotADirectoryError."""
        node = self.find(path)
        if isinstance(node, _File):
            raise _os_error(_not_directory_errno(node), path)
        return node

    def change(self, directory: _Directory, names: dict[str, _Node | None]) -> None:
        """Change names of a directory atomically. The change is not durable."""
        directory.pending.append(names)
        _apply(directory.names, names)

    def next_node(self) -> int:
        """Return a new inode number."""
        self._nodes += 1
        return self._nodes

    def next_descriptor(self) -> int:
        """Return a new descriptor number."""
        self._descriptors += 1
        return self._descriptors


class DiskCalls:
    """SystemCalls of one process on a Disk. It has many methods: one for each call."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._open: dict[int, _Open] = {}
        self._has_exited = False

    def exit(self) -> None:
        """End the process: close all descriptors and release all locks."""
        for fd in list(self._open):
            self.close(fd)
        self._has_exited = True

    def confine(self, root: Path) -> None:
        """Do nothing: this disk follows no links anywhere."""

    def keeping_open(self, *directories: Path) -> AbstractContextManager[None]:
        return nullcontext()

    def open(self, path: Path | str, flags: int) -> int:
        path = Path(path)
        try:
            node = self._disk.find(path)
            if flags & os.O_CREAT and flags & os.O_EXCL:
                raise _os_error(errno.EEXIST, path)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
            node = _File(self._disk.next_node())
            self._disk.change(self._disk.directory(path.parent), {path.name: node})
        if isinstance(node, _Link):
            raise _os_error(errno.ELOOP, path)
        if flags & os.O_DIRECTORY and isinstance(node, _File):
            raise _os_error(errno.ENOTDIR, path)
        if flags & (os.O_WRONLY | os.O_RDWR) and isinstance(node, _Directory):
            raise _os_error(errno.EISDIR, path)
        if flags & os.O_TRUNC and isinstance(node, _File) and node.data:
            node.data.clear()
            node.pending.append(0)
        fd = self._disk.next_descriptor()
        self._open[fd] = _Open(node, bool(flags & os.O_APPEND))
        return fd

    def close(self, fd: int) -> None:
        if not self._has_exited:
            self._open.pop(fd).node.locks.pop(fd, None)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        opened = self._open[fd]
        file = self._file(fd)
        offset = len(file.data) if opened.is_append else opened.position
        _write(file.data, offset, bytes(data))
        file.pending.append((offset, bytes(data)))
        opened.position = offset + len(data)
        return len(data)

    def pread(self, fd: int, length: int, offset: int) -> bytes:
        return bytes(self._file(fd).data[offset : offset + length])

    def ftruncate(self, fd: int, length: int) -> None:
        file = self._file(fd)
        _resize(file.data, length)
        file.pending.append(length)

    def fsync(self, fd: int) -> None:
        _sync_node(self._open[fd].node)

    def sync_directory(self, path: Path) -> None:
        _sync_node(self._disk.directory(path))

    def fstat(self, fd: int) -> os.stat_result:
        return _stat(self._open[fd].node)

    def stat(self, path: Path | str) -> os.stat_result:
        path = Path(path)
        return _stat(self._disk.find(path))

    def listing(self, path: Path) -> dict[str, int]:
        return {name: node.number for name, node in self._disk.directory(path).names.items()}

    def lengths(self, path: Path) -> dict[str, int]:
        return {name: len(node.data) for name, node in self._disk.directory(path).names.items() if type(node) is _File}

    def mkdir(self, path: Path, mode: int = SHARED_MODE) -> None:
        parent = self._disk.directory(path.parent)
        if path.name in parent.names or not path.name:
            raise _os_error(errno.EEXIST, path)
        self._disk.change(parent, {path.name: _Directory(self._disk.next_node())})

    def link(self, source: Path | str, path: Path | str) -> None:
        source, path = Path(source), Path(path)
        self._disk.directory(source.parent)
        parent = self._disk.directory(path.parent)
        node = self._disk.find(source)
        if path.name in parent.names:
            raise _os_error(errno.EEXIST, path)
        if isinstance(node, _Directory):
            raise _os_error(errno.EPERM, path)
        self._disk.change(parent, {path.name: node})

    def symlink(self, target: str, path: Path) -> None:
        parent = self._disk.directory(path.parent)
        if path.name in parent.names:
            raise _os_error(errno.EEXIST, path)
        data = target.encode()
        self._disk.change(parent, {path.name: _Link(self._disk.next_node(), bytearray(data), bytearray(data))})

    def rename(self, source: Path, path: Path) -> None:
        self._disk.directory(source.parent)
        parent = self._disk.directory(path.parent)
        node = self._disk.find(source)
        existing = parent.names.get(path.name)
        if existing is node:
            return  # If both are names of one file, rename(2) does nothing.
        if source in path.parents:
            raise _os_error(errno.EINVAL, path)
        if path in source.parents:
            raise _os_error(errno.ENOTEMPTY, path)
        if existing is not None and isinstance(existing, _Directory) != isinstance(node, _Directory):
            raise _os_error(errno.EISDIR if isinstance(existing, _Directory) else errno.ENOTDIR, path)
        if isinstance(existing, _Directory) and existing.names:
            raise _os_error(errno.ENOTEMPTY, path)
        if source.parent == path.parent:
            self._disk.change(parent, {source.name: None, path.name: node})
            return
        self._disk.change(parent, {path.name: node})
        self._disk.change(self._disk.directory(source.parent), {source.name: None})

    def unlink(self, path: Path | str) -> None:
        path = Path(path)
        if isinstance(self._disk.find(path), _Directory):
            raise _os_error(errno.EISDIR, path)
        self._disk.change(self._disk.directory(path.parent), {path.name: None})

    def remove_tree(self, path: Path) -> None:
        self._disk.directory(path)
        self._disk.change(self._disk.directory(path.parent), {path.name: None})

    def flock(self, fd: int, operation: int) -> None:
        locks = self._open[fd].node.locks
        is_exclusive = not operation & fcntl.LOCK_SH
        if any(is_exclusive or other for holder, other in locks.items() if holder != fd):
            if operation & fcntl.LOCK_NB:
                raise BlockingIOError(errno.EWOULDBLOCK, "locked")
            raise OSError(errno.EDEADLK, "a process of a simulation cannot wait for a lock")
        locks[fd] = is_exclusive

    def _file(self, fd: int) -> _File:
        node = self._open[fd].node
        if isinstance(node, _Directory):
            raise IsADirectoryError(errno.EISDIR, "is a directory")
        return node


def _os_error(number: int, path: Path) -> OSError:
    return OSError(number, os.strerror(number), str(path))


def _not_directory_errno(node: _File) -> int:
    return errno.ELOOP if isinstance(node, _Link) else errno.ENOTDIR


def _stat(node: _Node) -> os.stat_result:
    """Return the status of a node. Owner and times are constant."""
    if isinstance(node, _Directory):
        mode, size = stat.S_IFDIR | DIRECTORY_MODE, 0
    else:
        mode, size = stat.S_IFLNK | 0o777 if isinstance(node, _Link) else stat.S_IFREG | FILE_MODE, len(node.data)
    times = {"st_atime_ns": 0, "st_mtime_ns": 0, "st_ctime_ns": 0}
    return os.stat_result((mode, node.number, 0, 1, *_user(), size, 0, 0, 0), times)


@functools.cache
def _user() -> tuple[int, int]:
    return os.geteuid(), os.getegid()


def _apply(names: dict[str, _Node], changes: dict[str, _Node | None]) -> None:
    for name, node in changes.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def _write(data: bytearray, offset: int, new: bytes) -> None:
    if len(data) < offset:
        _resize(data, offset)
    data[offset : offset + len(new)] = new


def _resize(data: bytearray, size: int) -> None:
    del data[size:]
    data.extend(bytes(size - len(data)))


def _apply_write(data: bytearray, write: tuple[int, bytes] | int) -> None:
    if isinstance(write, int):
        _resize(data, write)
    else:
        _write(data, *write)


def _sync_node(node: _Node) -> None:
    if isinstance(node, _File):
        for write in node.pending:
            _apply_write(node.durable, write)
    else:
        for names in node.pending:
            _apply(node.durable, names)
    node.pending.clear()


def _sync(node: _Node) -> None:
    _sync_node(node)
    if isinstance(node, _Directory):
        for below in node.names.values():
            _sync(below)


def _discard_pending(node: _Node, chance: random.Random | None) -> None:
    node.locks.clear()
    if isinstance(node, _File):
        _discard_pending_writes(node, chance)
        return
    for names in _survivors(node.pending, chance):
        _apply(node.durable, names)
    node.pending.clear()
    node.names = dict(node.durable)
    for below in dict.fromkeys(node.names.values()):
        _discard_pending(below, chance)


def _survivors(pending: list[dict[str, _Node | None]], chance: random.Random | None) -> list[dict[str, _Node | None]]:
    if chance is None or not pending:
        return []
    match chance.randrange(3):
        case 0:
            return []
        case 1:
            return pending[: chance.randint(0, len(pending))]
        case _:
            return [names for names in pending if chance.random() < 0.5]


def _discard_pending_writes(file: _File, chance: random.Random | None) -> None:
    if file.pending and chance is not None:
        survivor_count = chance.randint(0, len(file.pending))
        for write in file.pending[:survivor_count]:
            _apply_write(file.durable, write)
        torn = file.pending[survivor_count] if survivor_count < len(file.pending) else 0
        if isinstance(torn, tuple):
            offset, data = torn
            prefix = data[: chance.randint(0, len(data))]
            _write(file.durable, offset, prefix + bytes(chance.choice((0, len(data) - len(prefix)))))
    file.pending.clear()
    file.data = bytearray(file.durable)


def _export(node: _Node, target: Path, exported: dict[int, Path]) -> None:
    if isinstance(node, _Directory):
        target.mkdir()
        for name, below in node.names.items():
            _export(below, target / name, exported)
    elif node.number in exported:
        os.link(exported[node.number], target, follow_symlinks=False)
    elif isinstance(node, _Link):
        target.symlink_to(node.data.decode())
        exported[node.number] = target
    else:
        target.write_bytes(node.data)
        exported[node.number] = target
