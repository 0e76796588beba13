"""System calls by which files of a user's tree are replaced (SPEC.md "Changes").

Every call acts on a name in an open directory. Directories are opened one from another, and no symbolic link is
followed. So a directory that is swapped for a link leads to an error, not to another place. Only the root is opened by
its path. Tests replace this class by a simulated tree.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import Protocol

_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# O_NONBLOCK: to open a FIFO that took the place of a file must not wait.
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PERMISSION_BITS = 0o777
_GROUP_BITS = 0o070
_PRIVILEGE_ATTRIBUTES = frozenset({"security.capability"})
"""Extended attributes that give privileges to a program. They belong to the content for which they were set."""


class TreeCalls(Protocol):
    """System calls on a tree. It has many methods: one for each system call.

    Every method raises OSError as the system does. New descriptors are close-on-exec.
    """

    def open_root(self, path: bytes) -> int:
        """Open the directory of a tree. Links in its path are followed."""

    def open_directory(self, parent: int, name: bytes) -> int:
        """Open a directory in a directory. A symbolic link is an error."""

    def open_file(self, directory: int, name: bytes) -> int:
        """Open a file for reading. A symbolic link is an error. A FIFO does not wait."""

    def create(self, directory: int, name: bytes, mode: int) -> int:
        """Create a file for writing. If the name exists, even as a link, raise FileExistsError. The umask applies."""

    def symlink(self, directory: int, target: bytes, name: bytes) -> None:
        """symlink(2). If the name exists, raise FileExistsError."""

    def read_link(self, directory: int, name: bytes) -> bytes:
        """readlink(2)."""

    def close(self, fd: int) -> None:
        """close(2)."""

    def names(self, directory: int) -> list[bytes]:
        """Return the names in a directory, unordered."""

    def status(self, directory: int, name: bytes) -> os.stat_result:
        """lstat(2)."""

    def fstat(self, fd: int) -> os.stat_result:
        """fstat(2)."""

    def can_write(self, directory: int, name: bytes) -> bool:
        """Return whether this user may write to an entry. `.` is the directory itself."""

    def free_bytes(self, directory: int) -> int:
        """Return the number of bytes that this user can still write to the file system of a directory."""

    def pread(self, fd: int, length: int, offset: int) -> bytes:
        """pread(2)."""

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """write(2). Returns the number of bytes written, which may be fewer than given."""

    def copy_status(self, source: int, target: int, mode: int) -> None:
        """Give a file the group, the extended attributes and, as `mode` says, the permissions of another file.

        Setuid, setgid and sticky bits are never set, and no attribute that gives privileges is copied. If the group
        cannot be set, the group gets no permissions. Times are not copied.
        """

    def rename(self, source_directory: int, source: bytes, directory: int, target: bytes) -> None:
        """rename(2) of a file."""

    def link(self, source_directory: int, source: bytes, directory: int, target: bytes) -> None:
        """link(2). If `target` exists, raise FileExistsError."""

    def unlink(self, directory: int, name: bytes) -> None:
        """unlink(2)."""

    def mkdir(self, directory: int, name: bytes) -> None:
        """Make a directory. If the name exists, even as a link, raise FileExistsError. The umask applies."""

    def rmdir(self, directory: int, name: bytes) -> None:
        """rmdir(2): remove an empty directory. A symbolic link is an error."""

    def sync(self) -> None:
        """sync(2): everything that was written is on disk on return."""

    def try_lock(self, fd: int) -> bool:
        """Return whether this process holds the exclusive lock of a descriptor now. The lock ends with `close`."""


class RealTreeCalls:
    """System calls of the operating system."""

    close = staticmethod(os.close)
    fstat = staticmethod(os.fstat)
    pread = staticmethod(os.pread)
    write = staticmethod(os.write)
    sync = staticmethod(os.sync)

    def open_root(self, path: bytes) -> int:
        return os.open(path, _DIRECTORY_FLAGS)

    def open_directory(self, parent: int, name: bytes) -> int:
        return os.open(name, _DIRECTORY_FLAGS | os.O_NOFOLLOW, dir_fd=parent)

    def open_file(self, directory: int, name: bytes) -> int:
        return os.open(name, _READ_FLAGS, dir_fd=directory)

    def create(self, directory: int, name: bytes, mode: int) -> int:
        return os.open(name, _CREATE_FLAGS, mode & _PERMISSION_BITS, dir_fd=directory)

    def symlink(self, directory: int, target: bytes, name: bytes) -> None:
        os.symlink(target, name, dir_fd=directory)

    def read_link(self, directory: int, name: bytes) -> bytes:
        return os.readlink(name, dir_fd=directory)

    def names(self, directory: int) -> list[bytes]:
        with os.scandir(directory) as entries:
            return [os.fsencode(entry.name) for entry in entries]

    def status(self, directory: int, name: bytes) -> os.stat_result:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)

    def can_write(self, directory: int, name: bytes) -> bool:
        return os.access(name, os.W_OK, dir_fd=directory, effective_ids=True)

    def free_bytes(self, directory: int) -> int:
        space = os.fstatvfs(directory)
        return space.f_bavail * space.f_frsize

    def copy_status(self, source: int, target: int, mode: int) -> None:
        group = os.fstat(source).st_gid
        if os.fstat(target).st_gid != group:
            try:
                os.fchown(target, -1, group)
            except PermissionError:
                mode &= ~_GROUP_BITS
        # Not every file system has extended attributes, and not every attribute can be set.
        with contextlib.suppress(OSError):
            for name in os.listxattr(source):
                if name not in _PRIVILEGE_ATTRIBUTES:
                    with contextlib.suppress(OSError):
                        os.setxattr(target, name, os.getxattr(source, name))
        os.fchmod(target, mode & _PERMISSION_BITS)

    def rename(self, source_directory: int, source: bytes, directory: int, target: bytes) -> None:
        os.rename(source, target, src_dir_fd=source_directory, dst_dir_fd=directory)

    def link(self, source_directory: int, source: bytes, directory: int, target: bytes) -> None:
        os.link(source, target, src_dir_fd=source_directory, dst_dir_fd=directory, follow_symlinks=False)

    def unlink(self, directory: int, name: bytes) -> None:
        os.unlink(name, dir_fd=directory)

    def mkdir(self, directory: int, name: bytes) -> None:
        os.mkdir(name, dir_fd=directory)

    def rmdir(self, directory: int, name: bytes) -> None:
        os.rmdir(name, dir_fd=directory)

    def try_lock(self, fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
