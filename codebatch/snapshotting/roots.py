"""Source roots: the directories and files that the user named, relative to one base, and their project."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from codebatch.errors import InvalidInput, UnreadablePath
from codebatch.snapshotting.walk import is_git_directory


class SourceRoots(msgspec.Struct, frozen=True, array_like=True):
    """The paths of the source roots, sorted and relative to `base`. An empty path means the base itself."""

    base: bytes
    directories: tuple[bytes, ...]
    files: tuple[bytes, ...]

    @property
    def roots(self) -> tuple[bytes, ...]:
        """All roots as absolute paths, directories first."""
        return tuple(os.path.join(self.base, path) if path else self.base for path in self.directories + self.files)


def resolve_sources(roots: Sequence[Path], store_root: Path | None) -> SourceRoots:
    """Return the paths that the user named, relative to their common base.

    A named link to a directory is followed. A named link to a file is not. Raises InvalidInput if a root does not
    exist, is neither a file nor a directory, or is in the store or in `.git`.
    """
    if not roots:
        raise InvalidInput("no path was given")
    directories, files = set(), set()
    for root in roots:
        path = os.fsencode(root)
        try:
            mode = os.stat(path).st_mode if not os.path.islink(path) or os.path.isdir(path) else os.lstat(path).st_mode
        except PermissionError as error:
            raise UnreadablePath(str(root), error.strerror) from error
        except OSError as error:
            raise InvalidInput(f"{root}: {error.strerror}") from error
        if stat.S_ISDIR(mode):
            directories.add(os.path.realpath(path))
        elif stat.S_ISREG(mode) or stat.S_ISLNK(mode):
            parent, name = os.path.split(os.path.abspath(path))
            files.add(os.path.join(os.path.realpath(parent), name))
        else:
            raise InvalidInput(f"{root} is neither a file nor a directory")
    store = None if store_root is None else os.path.realpath(os.fsencode(store_root))
    for path in directories | files:
        if store is not None and (path == store or path.startswith(store + b"/")):
            raise InvalidInput(
                f"{os.fsdecode(path)} is in the store", hint="give the source directory, or move the store"
            )
        if any(map(is_git_directory, path.split(b"/"))):
            raise InvalidInput(f"{os.fsdecode(path)} is in a .git directory, which is always excluded")
    base = os.path.commonpath([*directories, *(os.path.dirname(file) for file in files)])
    return SourceRoots(
        base,
        tuple(sorted(_path_below(base, path) for path in directories)),
        tuple(sorted(_path_below(base, path) for path in files)),
    )


class ProjectSelection(msgspec.Struct, frozen=True):
    """The roots of a snapshot, and the paths to which the work is restricted, relative to the base of the roots.

    The paths are sorted. If there are none, the work covers all files of the snapshot.
    """

    sources: SourceRoots
    paths: tuple[bytes, ...]

    @property
    def projects(self) -> tuple[bytes, ...]:
        """The directory of the project, or all named roots, sorted."""
        return tuple(sorted(self.sources.roots))


def select_project(
    roots: Sequence[Path], store_root: Path | None, project_of: Callable[[bytes], bytes | None] = lambda _: None
) -> ProjectSelection:
    """Return the project that contains all roots, restricted to these roots.

    If the roots belong to no common project, return the roots themselves, without a restriction. `project_of` returns
    the top directory of the project that contains an absolute path without links, or None. Raises the errors of
    `resolve_sources`.
    """
    named = resolve_sources(roots, store_root)
    projects = set(map(project_of, named.roots))
    (project,) = projects if len(projects) == 1 else (None,)
    if project is None:
        return ProjectSelection(named, ())
    below = sorted(_path_below(project, root.rstrip(b"/")) for root in named.roots)
    paths = [path for path in below if not any(path.startswith(other + b"/") for other in below)]
    return ProjectSelection(SourceRoots(project, (b"",), ()), () if b"" in below else tuple(paths))


def store_below(base: bytes, store_root: Path) -> bytes | None:
    """Return the path of the store relative to the base, or None if the store is not below the base."""
    store = os.path.realpath(os.fsencode(store_root))
    prefix = base if base.endswith(b"/") else base + b"/"
    return store[len(prefix) :] if store.startswith(prefix) else None


def _path_below(base: bytes, path: bytes) -> bytes:
    return path[len(base) :].lstrip(b"/")
