"""Values of directories, such as ignore files, that apply to all paths below the directory."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class DirectoryMap(Generic[T]):
    """A map from directories to values.

    Looking up a path returns the values of the directories above it, nearest first.

    Results are cached for each directory, so the time of a lookup does not depend on depth.
    """

    def __init__(self) -> None:
        self._values: dict[bytes, T] = {}
        self._cached: dict[bytes, tuple[T, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self._values)

    def put(self, directory: bytes, value: T) -> None:
        """Set the value of a directory. The empty path is the root of the tree."""
        self._values[directory] = value
        # Caching a result for a directory also caches results for its ancestors. So if this directory is not cached, no
        # directory below it is cached.
        if directory in self._cached:
            self._cached = {}

    def values_above(self, path: bytes) -> tuple[T, ...]:
        """Return the values of the directories above a path, nearest first."""
        if not self._values:
            return ()
        directory = parent_directory(path)
        unknown = []
        while directory not in self._cached:
            unknown.append(directory)
            if not directory:
                break
            directory = parent_directory(directory)
        values = self._cached.get(directory, ())
        for below in reversed(unknown):
            if below in self._values:
                values = (self._values[below], *values)
            self._cached[below] = values
        return values


def parent_directory(path: bytes) -> bytes:
    """Return the parent directory of a path. The root of the tree is its own parent."""
    return path[: max(path.rfind(b"/"), 0)]


def common_length(one: Sequence[object], other: Sequence[object]) -> int:
    """Return the number of leading components that two paths share."""
    length = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        length += 1
    return length


def directories_above(paths: Iterable[bytes]) -> set[bytes]:
    """Return all directories above some paths, except the root of the tree."""
    above: set[bytes] = set()
    for path in paths:
        while (path := parent_directory(path)) and path not in above:
            above.add(path)
    return above


def innermost_directory(directories: Iterable[bytes], path: bytes) -> bytes | None:
    """Return the innermost of the directories that contain a path or are equal to it. None if there is none."""
    enclosing = (
        directory
        for directory in directories
        if not directory or path == directory or path.startswith(directory + b"/")
    )
    return max(enclosing, key=len, default=None)


def unknown_ancestors(directory: bytes, known: Container[bytes]) -> list[bytes]:
    """Return the path from a known directory down to `directory`, without the known one, outermost first.

    It starts below the nearest ancestor in `known`. The result is empty if `directory` is in `known`. `known` must
    contain the root of the tree.
    """
    unknown = []
    while directory not in known:
        unknown.append(directory)
        directory = parent_directory(directory)
    return unknown[::-1]
