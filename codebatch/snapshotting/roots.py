"""What the user named: one directory, one file, or several, below one base; and the project that it is a part of."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from codebatch.errors import InvalidInput, UnreadablePath
from codebatch.snapshotting.walk import is_git


class SourceRoots(msgspec.Struct, frozen=True, array_like=True):
    """Paths below `base`, sorted. The empty directory is the base itself."""

    base: bytes
    directories: tuple[bytes, ...]
    files: tuple[bytes, ...]

    @property
    def roots(self) -> tuple[bytes, ...]:
        """All of them, as absolute paths."""
        return tuple(os.path.join(self.base, path) if path else self.base for path in self.directories + self.files)


def resolve_sources(roots: Sequence[Path], store_root: Path | None) -> SourceRoots:
    """Find the base of what was named. A named link to a directory is followed, one to a file is taken as a link.

    Raises InvalidInput where something is not there, is neither file nor directory, or lies in the store or in `.git`.
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
        if any(map(is_git, path.split(b"/"))):
            raise InvalidInput(f"{os.fsdecode(path)} is in a .git directory, which is always excluded")
    base = os.path.commonpath([*directories, *(os.path.dirname(file) for file in files)])
    return SourceRoots(
        base,
        tuple(sorted(_below(base, path) for path in directories)),
        tuple(sorted(_below(base, path) for path in files)),
    )


class Selection(msgspec.Struct, frozen=True):
    """What is to be frozen, and the paths below its base, in ascending order, to which the work is restricted.

    Without any, all that is frozen is worked on.
    """

    sources: SourceRoots
    paths: tuple[bytes, ...]

    @property
    def projects(self) -> tuple[bytes, ...]:
        """The project: its directory, or all that was named, sorted."""
        return tuple(sorted(self.sources.roots))


def select(
    roots: Sequence[Path], store_root: Path | None, project_of: Callable[[bytes], bytes | None] = lambda _: None
) -> Selection:
    """The project that all the roots are part of, restricted to them; where they have none in common, they alone.

    `project_of` returns the top directory of the project that an absolute path without links is part of, or None.
    Raises as `resolve_sources` does.
    """
    named = resolve_sources(roots, store_root)
    projects = set(map(project_of, named.roots))
    (project,) = projects if len(projects) == 1 else (None,)
    if project is None:
        return Selection(named, ())
    below = sorted(_below(project, root.rstrip(b"/")) for root in named.roots)
    paths = [path for path in below if not any(path.startswith(other + b"/") for other in below)]
    return Selection(SourceRoots(project, (b"",), ()), () if b"" in below else tuple(paths))


def store_below(base: bytes, store_root: Path) -> bytes | None:
    """The store's path below the base, None where it lies elsewhere."""
    store = os.path.realpath(os.fsencode(store_root))
    prefix = base if base.endswith(b"/") else base + b"/"
    return store[len(prefix) :] if store.startswith(prefix) else None


def _below(base: bytes, path: bytes) -> bytes:
    return path[len(base) :].lstrip(b"/")
