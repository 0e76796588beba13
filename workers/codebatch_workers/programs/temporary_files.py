"""Files that are written below an empty directory, for programs that accept only files."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence

FILE_NAMES_BYTES_MAX = 100_000
"""Maximum size of the file names of one call."""

# A longer path might exceed the system's limit when it is appended to the directory.
_PATH_BYTES_MAX = 2000
_NAME_BYTES_MAX = 240
_ENDING_BYTES_MAX = 16


class TemporaryFiles:
    """Files below an empty directory. A function to remove each file or directory is recorded."""

    def __init__(self, directory: bytes) -> None:
        """Create the directory. If it exists, everything in it is removed first."""
        if os.path.lexists(directory):
            _remove_all(directory)
        self.directory = directory
        self._undo: dict[bytes, Callable[[bytes], None]] = {}
        os.mkdir(directory)

    def write_file(self, name: bytes, content: bytes, *, is_executable: bool = False) -> None:
        """Write a file, unless this object has already written it.

        Raises FileExistsError if the name is that of a directory, or if the file system does not distinguish the name
        from the name of another file.
        """
        if self._undo.get(name) is os.unlink:
            return
        self.make_directory(name.rpartition(b"/")[0])
        mode = 0o700 if is_executable else 0o600
        # Descriptors are twice as fast as file objects, which matters for thousands of small files.
        descriptor = os.open(self._path(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        self._undo[name] = os.unlink
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(descriptor, view) :]
        finally:
            os.close(descriptor)

    def make_link(self, name: bytes, target: bytes) -> None:
        """Create a symbolic link, unless a file of this object has the name or is below it."""
        if name not in self._undo:
            self.make_directory(name.rpartition(b"/")[0])
            os.symlink(target, self._path(name))
            self._undo[name] = os.unlink

    def make_directory(self, name: bytes) -> None:
        """Create a directory and those above it, unless this object has created them.

        Raises FileExistsError if one of them is a file or a symbolic link.
        """
        if name and self._undo.get(name) is not os.rmdir:
            self.make_directory(name.rpartition(b"/")[0])
            os.mkdir(self._path(name))
            self._undo[name] = os.rmdir

    def _path(self, name: bytes) -> bytes:
        return self.directory + b"/" + name

    def remove(self) -> None:
        """Remove the directory. Removing each recorded file is twice as fast as listing the directory first."""
        try:
            self._check_directories()
            for name, remove in reversed(self._undo.items()):
                remove(self._path(name))
            os.rmdir(self.directory)
        except OSError:
            # Another program has added or removed files in the directory.
            _remove_all(self.directory)

    def _check_directories(self) -> None:
        """Raise OSError if a directory was replaced, for example by a symbolic link to a directory of the user.

        The recorded names would then denote files of the user.
        """
        directories = [self._path(name) for name, remove in self._undo.items() if remove is os.rmdir]
        for path in (self.directory, *directories):
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                raise NotADirectoryError(path)


def _remove_all(directory: bytes) -> None:
    """Remove a directory as far as possible, without following symbolic links."""
    with contextlib.suppress(OSError):
        if os.path.islink(directory):
            os.unlink(directory)
            return
        shutil.rmtree(directory, ignore_errors=True)
        if os.path.lexists(directory):
            _make_accessible(directory)
            shutil.rmtree(directory, ignore_errors=True)


def _make_accessible(directory: bytes) -> None:
    """Let the owner of a directory read and change it, and all directories below. Programs can have denied this."""
    os.chmod(directory, stat.S_IRWXU)
    for path, names, _ in os.walk(directory):
        for child in (os.path.join(path, name) for name in names):
            if not os.path.islink(child):
                os.chmod(child, stat.S_IRWXU)


def argument_chunks(arguments: Sequence[bytes], length_max: int | None = None) -> Iterator[list[bytes]]:
    """Split arguments into chunks, each of which fits on a command line. There is nearly always one chunk.

    A chunk has at most `length_max` arguments.
    """
    chunk: list[bytes] = []
    size = 0
    for argument in arguments:
        size += len(argument) + 1
        if chunk and (size > FILE_NAMES_BYTES_MAX or len(chunk) == length_max):
            yield chunk
            chunk, size = [], len(argument) + 1
        chunk.append(argument)
    if chunk:
        yield chunk


def written_path(path: bytes, *, default_ending: bytes = b"") -> bytes:
    """Return the location at which a file is written, relative to the directory.

    The location is the path itself, with invalid UTF-8 escaped, because programs repeat the location in JSON. If this
    is too long, the location is only the file name. If the file name is also too long, it is a fixed name with the
    ending of the file, or with `default_ending`.
    """
    path = path.decode("utf-8", "backslashreplace").encode("utf-8")
    if len(path) <= _PATH_BYTES_MAX and max(map(len, path.split(b"/"))) <= _NAME_BYTES_MAX:
        return path
    name = path.rpartition(b"/")[2]
    if len(name) <= _NAME_BYTES_MAX:
        return name
    ending = os.path.splitext(name)[1]
    return b"module" + (ending if 0 < len(ending) <= _ENDING_BYTES_MAX else default_ending)
