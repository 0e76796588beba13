"""The paths of a snapshot as resolution asks for them: by name, by directory, by ending, by nearness.

Paths are relative, with `/` between components; the root directory is the empty string.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache

import msgspec

from codebatch.model.record import Resolution
from codebatch_workers.resolution.configuration_files import DOCUMENT_BYTES_MAX, is_decisive
from codebatch_workers.syntax.classification.purpose import purpose_of

# Where more files fit than these, the name says nothing.
FITS_MAX = 64
_ENDINGS_KEPT = 65_536


class Resolved(msgspec.Struct, frozen=True):
    """Where an import leads. `paths` is sorted, and empty where it is external."""

    resolution: Resolution
    paths: tuple[str, ...] = ()


EXTERNAL = Resolved("external")


def exact(path: str | None) -> Resolved:
    """What the language's rule names, or nothing."""
    return EXTERNAL if path is None else Resolved("exact", (path,))


def fitting(paths: Iterable[str]) -> Resolved:
    """What is found by likeness: one file, several, or none."""
    found = tuple(sorted(set(paths)))
    if not found or len(found) > FITS_MAX:
        return EXTERNAL
    return Resolved("file" if len(found) == 1 else "name", found)


def likely(source: str, candidates: Iterable[str]) -> Resolved:
    """Return the nearest files that an import of `source` may mean, if a rule of its language does not decide.

    The project's own code is never led into tests, their data or examples by a name alone.
    """
    return fitting(nearest(parent(source), reachable(source, candidates)))


def reachable(source: str, candidates: Iterable[str]) -> list[str]:
    """Return those of some files that code in `source` may use.

    The project's own code uses no tests or examples but those in its own directory.
    """
    if is_secondary(source):
        return list(candidates)
    directory = parent(source)
    return [path for path in candidates if parent(path) == directory or not is_secondary(path)]


def is_secondary(path: str) -> bool:
    """Return whether a file belongs to tests, their data, examples or templates."""
    return purpose_of(path.encode("utf-8", "surrogateescape")) is not None


def parent(path: str) -> str:
    """The directory of a path."""
    return path.rpartition("/")[0]


def join(directory: str, name: str) -> str:
    """A path below a directory. Either may be empty."""
    return f"{directory}/{name}" if directory and name else directory or name


def relative_to(directory: str, written: str) -> str | None:
    """The path that a relative one means, without `.` and `..`; None where it leaves the tree."""
    if written.startswith("/"):
        return None
    parts = directory.split("/") if directory else []
    for part in written.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def ancestors(directory: str) -> Iterator[str]:
    """The directory and all above it, nearest first, the root last."""
    while directory:
        yield directory
        directory = parent(directory)
    yield ""


def nearest(directory: str, paths: Sequence[str]) -> list[str]:
    """Of several paths those that share most leading components with a directory."""
    if len(paths) < 2:
        return list(paths)
    here = directory.split("/")
    shared = [_shared(here, path.split("/")) for path in paths]
    most = max(shared)
    return [path for path, count in zip(paths, shared, strict=True) if count == most]


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for mine, yours in zip(one, other, strict=False):
        if mine != yours:
            break
        count += 1
    return count


class _Endings:
    """Finds paths by their last components: they are kept sorted with their components turned round, once any is
    looked for.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = paths
        self.find = lru_cache(_ENDINGS_KEPT)(self._find)

    @cached_property
    def _turned(self) -> list[str]:
        return sorted(f"{_turn(path)}/" for path in self._paths)

    def _find(self, ending: str) -> tuple[str, ...]:
        wanted = f"{_turn(ending)}/"
        place = bisect_left(self._turned, wanted)
        found: list[str] = []
        while place < len(self._turned) and self._turned[place].startswith(wanted) and len(found) <= FITS_MAX * 16:
            found.append(_turn(self._turned[place][:-1]))
            place += 1
        return tuple(sorted(found))


def _turn(path: str) -> str:
    return "/".join(reversed(path.split("/")))


class PathTree:
    """The paths of one snapshot, of which content is had through `read`: None where there is none to have."""

    def __init__(self, paths: Iterable[str], read: Callable[[str], bytes | None]) -> None:
        self.paths = frozenset(paths)
        self._read = read
        self._files: dict[str, list[str]] = {}
        for path in sorted(self.paths):
            self._files.setdefault(parent(path), []).append(path)
        directories: set[str] = set()
        for directory in self._files:
            for each in ancestors(directory):
                if each in directories:
                    break
                directories.add(each)
        self.directories = frozenset(directories)
        self._endings = _Endings(self.paths)
        self._directory_endings = _Endings(self.directories - {""})
        self._nearest: dict[tuple[str, tuple[str, ...]], str | None] = {}

    def read(self, path: str) -> bytes | None:
        """The content of a configuration file; None where it is not there or too large."""
        content = self._read(path) if path in self.paths and is_decisive(path) else None
        return None if content is None or len(content) > DOCUMENT_BYTES_MAX else content

    def files_in(self, directory: str) -> Sequence[str]:
        """The paths of the files that stand in a directory, sorted."""
        return self._files.get(directory, ())

    def first(self, candidates: Iterable[str]) -> str | None:
        """The first of some paths that is there."""
        # A loop, for it takes half the time of a generator expression.
        for path in candidates:
            if path in self.paths:
                return path
        return None

    def ending_with(self, ending: str) -> tuple[str, ...]:
        """The paths whose last components are these, sorted; of far too many to mean anything only some."""
        return self._endings.find(ending)

    def directories_ending_with(self, ending: str) -> tuple[str, ...]:
        """The directories whose last components are these, as `ending_with`."""
        return self._directory_endings.find(ending)

    def all_named(self, name: str) -> list[str]:
        """Every file of a name, sorted."""
        return sorted(path for directory in self._files if (path := join(directory, name)) in self.paths)

    def nearest_file(self, directory: str, *names: str) -> str | None:
        """The first of these names that stands in a directory or in one above it, the nearest directory first."""
        passed = []
        found: str | None = None
        for each in ancestors(directory):
            key = (each, names)
            if key in self._nearest:
                found = self._nearest[key]
                break
            passed.append(key)
            found = self.first(join(each, name) for name in names)
            if found is not None:
                break
        self._nearest.update(dict.fromkeys(passed, found))
        return found
