"""Files of a tree that a list of patterns selects. Ignore files have no effect, because the list names the files."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence

from codebatch.model.entry import display_path
from codebatch.model.gitignore import parse_arguments
from codebatch.snapshotting.directories import DirectoryDescriptors
from codebatch.snapshotting.stat_cache import FileStat, stat_at
from codebatch.store.reserved_names import has_reserved_name

VISITED_PATHS_MAX = 1_000_000
_SPECIAL_CHARACTERS = frozenset("*?[\\")


def positive_patterns(patterns: Sequence[str]) -> list[str]:
    """Return the patterns that select files. The others begin with `!` and leave files out."""
    return [pattern for pattern in patterns if not pattern.startswith("!")]


def find_matching_files(directories: DirectoryDescriptors, patterns: Sequence[str]) -> dict[bytes, FileStat]:
    """Map each path that gitignore(5) patterns select to its lstat(2) result, sorted by path.

    Directories have no row. Links are not followed. What belongs to git or codebatch is left out. Only directories in
    which a pattern may match are read. Raises OSError.
    """
    selection = parse_arguments(patterns, "patterns")
    prefixes = list(map(_literal_parts, positive_patterns(patterns)))
    found: dict[bytes, FileStat] = {}
    pending, visited = [b""], 0
    while pending:
        directory = pending.pop()
        entries: list[tuple[bytes, bool]] = []
        with contextlib.suppress(*((FileNotFoundError, NotADirectoryError) if directory else ())):
            entries = [
                (os.fsencode(entry.name), entry.is_dir(follow_symlinks=False))
                for entry in directories.scan_directory(directory)
            ]
        visited += len(entries)
        if visited > VISITED_PATHS_MAX:
            raise OSError(errno.EFBIG, f"more than {VISITED_PATHS_MAX:,} paths have to be searched", directory)
        for name, is_directory in entries:
            path = directory + b"/" + name if directory else name
            if has_reserved_name(name):
                continue
            if not is_directory:
                if selection.selects(path):
                    found[path] = stat_at(directories, path)
            elif any(all(map(bytes.__eq__, parts, path.split(b"/"))) for parts in prefixes):
                pending.append(path)
    return dict(sorted(found.items()))


def unmatched_patterns(patterns: Sequence[str], paths: Sequence[bytes]) -> list[str]:
    """Return the patterns that should select files, but match none of the selected paths."""
    lists = {pattern: parse_arguments([pattern], "patterns") for pattern in positive_patterns(patterns)}
    return [pattern for pattern, one in lists.items() if not any(map(one.selects, paths))]


def first_unreadable(error: OSError) -> str:
    """Return the path and the reason of an error as text."""
    path = os.fsencode(error.filename) if isinstance(error.filename, str | bytes) else b""
    return f"{display_path(path)}: {error.strerror}" if path else str(error.strerror)


def _literal_parts(pattern: str) -> list[bytes]:
    """Return the components with which each path that a pattern matches begins. They may be empty."""
    body = pattern.rstrip(" ").removesuffix("/")
    parts: list[bytes] = []
    for part in body.removeprefix("/").split("/") if "/" in body else ():
        if not _SPECIAL_CHARACTERS.isdisjoint(part):
            break
        parts.append(os.fsencode(part))
    return parts
