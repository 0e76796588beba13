"""Queries on the paths of a snapshot: by directory, by name, by last components, and by distance.

Paths are relative to the snapshot, and their components are separated by `/`. The root directory is the empty string.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache

import msgspec

from codebatch.model.nearest_directories import common_length
from codebatch.model.record import Resolution
from codebatch_workers.resolution.configuration_files import DOCUMENT_BYTES_MAX, is_configuration_file
from codebatch_workers.syntax.classification.purpose import file_purpose

# If more files match a name, the name is too common for a match to mean anything.
FITTING_FILES_MAX = 64
_CACHED_ENDINGS_MAX = 65_536


class ResolvedImport(msgspec.Struct, frozen=True):
    """The result of a resolution. `paths` is sorted, and empty if the import is external."""

    resolution: Resolution
    paths: tuple[str, ...] = ()


EXTERNAL_IMPORT = ResolvedImport("external")


def exact_import(path: str | None) -> ResolvedImport:
    """Return an `exact` result with a path, or EXTERNAL_IMPORT if the path is None."""
    return EXTERNAL_IMPORT if path is None else ResolvedImport("exact", (path,))


def fitting_import(paths: Iterable[str]) -> ResolvedImport:
    """Return a result for files that merely fit: `file` for one, `name` for several.

    Return EXTERNAL_IMPORT for none, or for more than FITTING_FILES_MAX.
    """
    files = tuple(sorted(set(paths)))
    if not files or len(files) > FITTING_FILES_MAX:
        return EXTERNAL_IMPORT
    return ResolvedImport("file" if len(files) == 1 else "name", files)


def likely_import(source: str, candidates: Iterable[str]) -> ResolvedImport:
    """Return the nearest files that an import in `source` can mean, if the rule of its language does not decide.

    Such matches by name never lead from production code to tests, test data or examples in other directories.
    """
    return fitting_import(nearest_paths(parent_directory(source), usable_files(source, candidates)))


def usable_files(source: str, candidates: Iterable[str]) -> list[str]:
    """Return those of `candidates` that code in `source` can use.

    Production code uses tests, test data and examples only if they are in its own directory.
    """
    if is_test_or_example(source):
        return list(candidates)
    directory = parent_directory(source)
    return [path for path in candidates if parent_directory(path) == directory or not is_test_or_example(path)]


def is_test_or_example(path: str) -> bool:
    """Return whether a file belongs to tests, test data, examples or templates."""
    return file_purpose(path.encode("utf-8", "surrogateescape")) is not None


def parent_directory(path: str) -> str:
    """Return the directory of a path. For a file at the root, this is the empty string."""
    return path.rpartition("/")[0]


def join_path(directory: str, name: str) -> str:
    """Join a directory and a relative path. Either can be empty."""
    return f"{directory}/{name}" if directory and name else directory or name


def relative_to(directory: str, written: str) -> str | None:
    """Join a directory and a path with `.` and `..`. Return None if the result is outside the tree."""
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


def iter_ancestors(directory: str) -> Iterator[str]:
    """Yield `directory` and all directories above it, nearest first. The last one is the root."""
    while directory:
        yield directory
        directory = parent_directory(directory)
    yield ""


def nearest_paths(directory: str, paths: Sequence[str]) -> list[str]:
    """Return the paths that have the most leading components in common with `directory`."""
    if len(paths) < 2:
        return list(paths)
    components = directory.split("/")
    shared = [common_length(components, path.split("/")) for path in paths]
    most = max(shared)
    return [path for path, count in zip(paths, shared, strict=True) if count == most]


class _EndingIndex:
    """An index of paths by their last components.

    It is a sorted list of the paths, each with its components in reverse order. Results of queries are sorted as paths.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = paths
        self.find = lru_cache(_CACHED_ENDINGS_MAX)(self._find_paths)

    @cached_property
    def _reversed_paths(self) -> list[str]:
        return sorted(f"{_reverse_components(path)}/" for path in self._paths)

    def _find_paths(self, ending: str) -> tuple[str, ...]:
        prefix = f"{_reverse_components(ending)}/"
        index = bisect_left(self._reversed_paths, prefix)
        paths: list[str] = []
        while (
            index < len(self._reversed_paths)
            and self._reversed_paths[index].startswith(prefix)
            and len(paths) <= FITTING_FILES_MAX * 16
        ):
            paths.append(_reverse_components(self._reversed_paths[index][:-1]))
            index += 1
        return tuple(sorted(paths))


def _reverse_components(path: str) -> str:
    return "/".join(reversed(path.split("/")))


class PathTree:
    """The paths of one snapshot. `read` returns the content of a file, or None if it is not available."""

    def __init__(self, paths: Iterable[str], read: Callable[[str], bytes | None]) -> None:
        self.paths = frozenset(paths)
        self._read = read
        self._files: dict[str, list[str]] = {}
        for path in sorted(self.paths):
            self._files.setdefault(parent_directory(path), []).append(path)
        directories: set[str] = set()
        for directory in self._files:
            for ancestor in iter_ancestors(directory):
                if ancestor in directories:
                    break
                directories.add(ancestor)
        self.directories = frozenset(directories)
        self._endings = _EndingIndex(self.paths)
        self._directory_endings = _EndingIndex(self.directories - {""})
        self._nearest: dict[tuple[str, tuple[str, ...]], str | None] = {}

    def read(self, path: str) -> bytes | None:
        """Return the content of a configuration file or of Rust source.

        Return None if the file is missing, too large, or cannot affect resolution.
        """
        content = self._read(path) if path in self.paths and is_configuration_file(path) else None
        return None if content is None or len(content) > DOCUMENT_BYTES_MAX else content

    def files_in(self, directory: str) -> Sequence[str]:
        """Return the paths of the files in a directory, sorted."""
        return self._files.get(directory, ())

    def first_existing(self, candidates: Iterable[str]) -> str | None:
        """Return the first candidate that is a file of the tree, or None."""
        # A loop takes half the time of a generator expression.
        for path in candidates:
            if path in self.paths:
                return path
        return None

    def files_ending_with(self, ending: str) -> tuple[str, ...]:
        """Return the paths that end with the components `ending`, sorted. If too many match, only some are returned."""
        return self._endings.find(ending)

    def directories_ending_with(self, ending: str) -> tuple[str, ...]:
        """Return the directories whose paths end with the components `ending`, sorted.

        If too many match, only some are returned.
        """
        return self._directory_endings.find(ending)

    def files_named(self, name: str) -> list[str]:
        """Return the paths of all files with a name, sorted."""
        return sorted(path for directory in self._files if (path := join_path(directory, name)) in self.paths)

    def nearest_file(self, directory: str, *names: str) -> str | None:
        """Return the nearest file with one of the names `names`, in `directory` or above it.

        If a directory has several of these files, the order of `names` decides.
        """
        missing_keys = []
        file: str | None = None
        for directory_above in iter_ancestors(directory):
            key = (directory_above, names)
            if key in self._nearest:
                file = self._nearest[key]
                break
            missing_keys.append(key)
            file = self.first_existing(join_path(directory_above, name) for name in names)
            if file is not None:
                break
        self._nearest.update(dict.fromkeys(missing_keys, file))
        return file
