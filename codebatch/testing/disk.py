"""A disk in memory that tells what processes see from what power loss leaves.

What is durable, by POSIX and no more: bytes of a file up to its last fsync(2); a name up to the last fsync(2) of the
directory that holds it. A file that was synced in a directory that was not has lost its name. A rename within one
directory is one change: after power loss there is the old name or the new one, never both and never neither.
All of it is as below a confined root: no symbolic link is followed.

It is one file, long as it is: the disk, and all calls that reach it.
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
    """`pending` are the writes since the last fsync: bytes at an offset, or a new size."""

    number: int
    data: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes] | int] = field(default_factory=list)
    locks: dict[int, bool] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class _Link(_File):
    """A symbolic link. Its target is its data, and durable with its name."""


@dataclass(eq=False, slots=True)
class _Directory:
    """`pending` are the changes of names since the last fsync: those of one element happen together or not at all."""

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
    """One file system, seen by any number of processes through `calls`. Not for threads that really run at once."""

    def __init__(self) -> None:
        self._nodes = 1
        self._descriptors = 2
        self._root = _Directory(1)

    def calls(self) -> DiskCalls:
        """The system calls of one process."""
        return DiskCalls(self)

    def sync(self) -> None:
        """Make all that there is durable: sync(2)."""
        _sync(self._root)

    def lose_power(self, chance: random.Random | None = None) -> None:
        """Forget what is not durable. Every process that saw the disk must be dead.

        Without `chance` all of it; with it a random part survives: the first changes, or any of them, or a file's new
        length filled with zeros, for a disk may write what it was not told to write yet, in any order.
        """
        _forget(self._root, chance)

    def has(self, path: Path) -> bool:
        """Whether there is something at a path."""
        try:
            self.find(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def export(self, source: Path, target: Path) -> None:
        """Write a directory of this disk to the real disk, hard links and all. `target` must not exist."""
        _export(self.find(source), target, {})

    def find(self, path: Path) -> _Node:
        """The node at a path. Raises FileNotFoundError, NotADirectoryError."""
        node: _Node = self._root
        for part in path.parts[1:]:
            if isinstance(node, _File):
                raise _refuse(_no_directory(node), path)
            below = node.names.get(part)
            if below is None:
                raise _refuse(errno.ENOENT, path)
            node = below
        return node

    def directory(self, path: Path) -> _Directory:
        """The directory at a path. Raises FileNotFoundError, NotADirectoryError."""
        node = self.find(path)
        if isinstance(node, _File):
            raise _refuse(_no_directory(node), path)
        return node

    def change(self, directory: _Directory, names: dict[str, _Node | None]) -> None:
        """Change names of a directory together, not durably."""
        directory.pending.append(names)
        _apply(directory.names, names)

    def next_node(self) -> int:
        """A fresh inode number."""
        self._nodes += 1
        return self._nodes

    def next_descriptor(self) -> int:
        """A fresh number of an open file description."""
        self._descriptors += 1
        return self._descriptors


class DiskCalls:
    """SystemCalls of one process of a Disk. It has many methods: one for each call."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._open: dict[int, _Open] = {}
        self._has_exited = False

    def exit(self) -> None:
        """The end of the process: everything is closed, every lock given up."""
        for fd in list(self._open):
            self.close(fd)
        self._has_exited = True

    def confine(self, root: Path) -> None:
        """Nothing to do: here no link is followed anywhere."""

    def keeping_open(self, *directories: Path) -> AbstractContextManager[None]:
        return nullcontext()

    def open(self, path: Path | str, flags: int) -> int:
        path = Path(path)
        try:
            node = self._disk.find(path)
            if flags & os.O_CREAT and flags & os.O_EXCL:
                raise _refuse(errno.EEXIST, path)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
            node = _File(self._disk.next_node())
            self._disk.change(self._disk.directory(path.parent), {path.name: node})
        if isinstance(node, _Link):
            raise _refuse(errno.ELOOP, path)
        if flags & os.O_DIRECTORY and isinstance(node, _File):
            raise _refuse(errno.ENOTDIR, path)
        if flags & (os.O_WRONLY | os.O_RDWR) and isinstance(node, _Directory):
            raise _refuse(errno.EISDIR, path)
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
            raise _refuse(errno.EEXIST, path)
        self._disk.change(parent, {path.name: _Directory(self._disk.next_node())})

    def link(self, source: Path | str, path: Path | str) -> None:
        source, path = Path(source), Path(path)
        self._disk.directory(source.parent)
        parent = self._disk.directory(path.parent)
        node = self._disk.find(source)
        if path.name in parent.names:
            raise _refuse(errno.EEXIST, path)
        if isinstance(node, _Directory):
            raise _refuse(errno.EPERM, path)
        self._disk.change(parent, {path.name: node})

    def symlink(self, target: str, path: Path) -> None:
        parent = self._disk.directory(path.parent)
        if path.name in parent.names:
            raise _refuse(errno.EEXIST, path)
        data = target.encode()
        self._disk.change(parent, {path.name: _Link(self._disk.next_node(), bytearray(data), bytearray(data))})

    def rename(self, source: Path, path: Path) -> None:
        self._disk.directory(source.parent)
        parent = self._disk.directory(path.parent)
        node = self._disk.find(source)
        there = parent.names.get(path.name)
        if there is node:
            return  # Two names of one file stay as they are.
        if source in path.parents:
            raise _refuse(errno.EINVAL, path)
        if path in source.parents:
            raise _refuse(errno.ENOTEMPTY, path)
        if there is not None and isinstance(there, _Directory) != isinstance(node, _Directory):
            raise _refuse(errno.EISDIR if isinstance(there, _Directory) else errno.ENOTDIR, path)
        if isinstance(there, _Directory) and there.names:
            raise _refuse(errno.ENOTEMPTY, path)
        if source.parent == path.parent:
            self._disk.change(parent, {source.name: None, path.name: node})
            return
        self._disk.change(parent, {path.name: node})
        self._disk.change(self._disk.directory(source.parent), {source.name: None})

    def unlink(self, path: Path | str) -> None:
        path = Path(path)
        if isinstance(self._disk.find(path), _Directory):
            raise _refuse(errno.EISDIR, path)
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


def _refuse(number: int, path: Path) -> OSError:
    return OSError(number, os.strerror(number), str(path))


def _no_directory(node: _File) -> int:
    return errno.ELOOP if isinstance(node, _Link) else errno.ENOTDIR


def _stat(node: _Node) -> os.stat_result:
    """Everything is this user's, and as old as time."""
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


def _redo(data: bytearray, write: tuple[int, bytes] | int) -> None:
    if isinstance(write, int):
        _resize(data, write)
    else:
        _write(data, *write)


def _sync_node(node: _Node) -> None:
    if isinstance(node, _File):
        for write in node.pending:
            _redo(node.durable, write)
    else:
        for names in node.pending:
            _apply(node.durable, names)
    node.pending.clear()


def _sync(node: _Node) -> None:
    _sync_node(node)
    if isinstance(node, _Directory):
        for below in node.names.values():
            _sync(below)


def _forget(node: _Node, chance: random.Random | None) -> None:
    node.locks.clear()
    if isinstance(node, _File):
        _forget_writes(node, chance)
        return
    for names in _survivors(node.pending, chance):
        _apply(node.durable, names)
    node.pending.clear()
    node.names = dict(node.durable)
    for below in dict.fromkeys(node.names.values()):
        _forget(below, chance)


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


def _forget_writes(file: _File, chance: random.Random | None) -> None:
    if file.pending and chance is not None:
        kept = chance.randint(0, len(file.pending))
        for write in file.pending[:kept]:
            _redo(file.durable, write)
        torn = file.pending[kept] if kept < len(file.pending) else 0
        if isinstance(torn, tuple):
            offset, data = torn
            sound = data[: chance.randint(0, len(data))]
            _write(file.durable, offset, sound + bytes(chance.choice((0, len(data) - len(sound)))))
    file.pending.clear()
    file.data = bytearray(file.durable)


def _export(node: _Node, target: Path, written: dict[int, Path]) -> None:
    if isinstance(node, _Directory):
        target.mkdir()
        for name, below in node.names.items():
            _export(below, target / name, written)
    elif node.number in written:
        os.link(written[node.number], target, follow_symlinks=False)
    elif isinstance(node, _Link):
        target.symlink_to(node.data.decode())
        written[node.number] = target
    else:
        target.write_bytes(node.data)
        written[node.number] = target
