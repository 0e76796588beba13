"""Consistent reads of single paths of a source tree.

The stored content is content that the whole path had at one moment.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

from codebatch.errors import SnapshotUnstable
from codebatch.model.entry import display_path, is_lfs_pointer
from codebatch.snapshotting.directories import DirectoryDescriptors
from codebatch.snapshotting.selection import READ_FLAGS
from codebatch.snapshotting.stat_cache import ABSENT_FILE, FLAG_LFS_POINTER, NO_KEY, FileStat, StatRow, file_stat
from codebatch.snapshotting.walk import unreadable_error
from codebatch.store.objects.frames import CHUNK_BYTES
from codebatch.store.objects.pack_writer import PackWriter, SizeChangedError

ATTEMPTS_MAX = 3
STREAMED_BYTES_MIN = 8 << 20

_REPLACED_ERRORS = (errno.ELOOP, errno.ENXIO, errno.EISDIR)


class _ChangedError(Exception):
    """The error that a path changed while it was read."""


def capture_entry(directories: DirectoryDescriptors, path: bytes, status: FileStat, writer: PackWriter) -> StatRow:
    """Store the content of a file or symbolic link, and return its row. `status` is the lstat(2) result of the path.

    If the path is no longer a file or link, the row has NO_KEY. If the file changes during the read, it is read again.
    There are at most ATTEMPTS_MAX reads. Raises SnapshotUnstable or SourceUnreadable.
    """
    directory, _, name = path.rpartition(b"/")
    for attempt in range(ATTEMPTS_MAX):
        try:
            parent = directories.open_directory(directory)
            if attempt:
                status = file_stat(os.stat(name, dir_fd=parent, follow_symlinks=False))
            if stat.S_ISREG(status.mode):
                return _capture_file(name, parent, writer)
            if stat.S_ISLNK(status.mode):
                return _capture_link(name, parent, status, writer)
            return StatRow(status, NO_KEY, 0)
        except (FileNotFoundError, NotADirectoryError):
            # The path was deleted after the listing. It is absent from the snapshot, as if it had been deleted before
            # the listing.
            return StatRow(ABSENT_FILE, NO_KEY, 0)
        except (_ChangedError, SizeChangedError):
            continue
        except OSError as error:
            raise unreadable_error(path, error.strerror) from error
    raise SnapshotUnstable(
        f"{display_path(path)} kept changing while it was read",
        hint="stop the program that writes to it, or exclude it with --exclude",
    )


def _capture_file(name: bytes, parent: int, writer: PackWriter) -> StatRow:
    """Read a regular file between two fstat(2) calls.

    If both calls return the same, the file did not change while it was read.
    """
    try:
        fd = os.open(name, READ_FLAGS, dir_fd=parent)
    except OSError as error:
        # A link (ELOOP), a socket (ENXIO) or a directory (EISDIR) has replaced the file since lstat.
        if error.errno in _REPLACED_ERRORS:
            raise _ChangedError from error
        raise
    try:
        before = os.fstat(fd)
        if not stat.S_ISREG(before.st_mode):
            raise _ChangedError
        if before.st_size > STREAMED_BYTES_MIN:
            digest = writer.add_stream(_iter_chunks(fd, before), before.st_size)
            key, flags = bytes.fromhex(digest), 0
        else:
            data = _read_up_to(fd, before.st_size)
            after = os.fstat(fd)
            if len(data) != before.st_size or _stat_identity(after) != _stat_identity(before):
                raise _ChangedError
            key = writer.add_key(data)
            flags = FLAG_LFS_POINTER if is_lfs_pointer(data) else 0
    finally:
        os.close(fd)
    return StatRow(file_stat(before), key, flags)


def _capture_link(name: bytes, parent: int, status: FileStat, writer: PackWriter) -> StatRow:
    try:
        target = os.readlink(name, dir_fd=parent)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _ChangedError from error
    if file_stat(os.stat(name, dir_fd=parent, follow_symlinks=False)) != status:
        raise _ChangedError
    return StatRow(status, writer.add_key(target), 0)


def _read_up_to(fd: int, size: int) -> bytes:
    """Read at most `size` + 1 bytes. If the extra byte exists, the file has grown."""
    data = os.read(fd, size + 1)
    if len(data) == size or not data:
        return data
    parts = [data]
    total = len(data)
    while total <= size and (data := os.read(fd, size + 1 - total)):
        parts.append(data)
        total += len(data)
    return b"".join(parts)


def _iter_chunks(fd: int, before: os.stat_result) -> Iterator[bytes]:
    """Yield the content of a large file in chunks.

    After the last chunk, raise _ChangedError if the file has changed since `before`. Then the caller stores no object.
    """
    while data := os.read(fd, CHUNK_BYTES):
        yield data
    if _stat_identity(os.fstat(fd)) != _stat_identity(before):
        raise _ChangedError


def _stat_identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
