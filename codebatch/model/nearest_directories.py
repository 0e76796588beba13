"""What directories of a tree say of all that is below them, such as their ignore files."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class Nearest(Generic[T]):
    """A value for some directories; for a path, those of the directories above it, the nearest first.

    What was found for a directory is kept: so a path costs the same at any depth.
    """

    def __init__(self) -> None:
        self._of: dict[bytes, T] = {}
        self._known: dict[bytes, tuple[T, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self._of)

    def put(self, directory: bytes, value: T) -> None:
        """Set the value of a directory; the empty one is the top of the tree."""
        self._of[directory] = value
        # What is known of a directory was made of what is known of those above it: not of this one, not of one below.
        if directory in self._known:
            self._known = {}

    def above(self, path: bytes) -> tuple[T, ...]:
        """The values of the directories above a path."""
        if not self._of:
            return ()
        directory = parent_of(path)
        unknown = []
        while directory not in self._known:
            unknown.append(directory)
            if not directory:
                break
            directory = parent_of(directory)
        values = self._known.get(directory, ())
        for below in reversed(unknown):
            if below in self._of:
                values = (self._of[below], *values)
            self._known[below] = values
        return values


def parent_of(path: bytes) -> bytes:
    """The directory that a path lies in; that of the top of the tree is itself."""
    return path[: max(path.rfind(b"/"), 0)]


def innermost(directories: Iterable[bytes], path: bytes) -> bytes | None:
    """Of some directories the innermost that a path is or lies below, None where there is none."""
    around = (each for each in directories if not each or path == each or path.startswith(each + b"/"))
    return max(around, key=len, default=None)


def unknown_from_top(directory: bytes, known: Container[bytes]) -> list[bytes]:
    """A directory and those above it of which nothing is known, the highest first; of the top something must be."""
    unknown = []
    while directory not in known:
        unknown.append(directory)
        directory = parent_of(directory)
    return unknown[::-1]
