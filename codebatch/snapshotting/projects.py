"""The limits of a project, which git and file permissions determine (SPEC.md "Projects").

Searches for settings, a work list or a store go upwards from the current directory. In a git work tree, they end at its
top. Elsewhere they end before the home directory, `/`, and directories that other users can write to. Otherwise,
another user could place a file there that decides which programs run.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from codebatch.errors import SourceUnreadable
from codebatch.snapshotting.walk import ignored_by


def work_tree_around(directory: bytes) -> bytes | None:
    """Return the top of the git work tree that contains a directory, or None. The path is absolute without links.

    A `.git` counts only if its owner is the user, root or the owner of `directory`. Otherwise another user could create
    /tmp/.git, and all directories below /tmp would be in that work tree.
    """
    start = directory
    while True:
        path = os.path.join(directory, b".git")
        if os.path.lexists(path) and _has_trusted_owner(path, start):
            return directory
        if directory == os.path.dirname(directory):
            return None
        directory = os.path.dirname(directory)


def is_ignored(directory: bytes, top: bytes) -> bool:
    """Return whether .gitignore files exclude a directory in the work tree at `top`."""
    if directory == top:
        return False

    try:
        return ignored_by(directory, directory, is_directory=True) is not None
    except SourceUnreadable:
        return False


def iter_project_directories(directory: bytes) -> Iterator[bytes]:
    """Yield the directories that a search visits, nearest first.

    `directory`, where it starts, is absolute and without links.
    """
    top = work_tree_around(directory)
    if top is not None and is_shared_place(top) and is_ignored(directory, top):
        top = None
    yield directory
    start = directory
    while directory != top:
        directory = os.path.dirname(directory)
        if top is None and search_end_reason(directory, start) is not None:
            return
        yield directory


def find_search_end(directory: bytes) -> tuple[bytes, str] | None:
    """Return the directory that a search from `directory` does not visit, and the reason.

    Return None if the search ends at the top of a work tree or of the file system.
    """
    *_, last = iter_project_directories(directory)
    above = os.path.dirname(last)
    if above == last or os.path.lexists(os.path.join(last, b".git")):
        return None
    reason = search_end_reason(above, directory)
    return None if reason is None else (above, reason)


def is_shared_place(directory: bytes) -> bool:
    """Return whether a directory must not contain a default store: `/`, the home directory, or world-writable."""
    return shared_place_reason(directory) is not None


def shared_place_reason(directory: bytes) -> str | None:
    """Return why a directory must not contain a default store, as the end of a sentence. Return None if it may."""
    if directory == b"/":
        return "it is the root directory"
    if directory == home_directory():
        return "it is your home directory"
    try:
        mode = os.stat(directory).st_mode
    except OSError:
        return None
    return f"other users may write to it (mode {stat.S_IMODE(mode):04o})" if mode & stat.S_IWOTH else None


def search_end_reason(directory: bytes, start: bytes) -> str | None:
    """Return why a search from `start` outside git does not visit a directory above. Return None if it does."""
    if (reason := shared_place_reason(directory)) is not None:
        return reason
    return None if _has_trusted_owner(directory, start) else "it belongs to another user"


def home_directory() -> bytes:
    """Return the home directory of the user, with links resolved."""
    return os.path.realpath(os.path.expanduser(b"~"))


def _has_trusted_owner(path: bytes, start: bytes) -> bool:
    """Return whether a path belongs to the user, to root, or to the owner of the directory where the search started."""
    try:
        return os.lstat(path).st_uid in (os.geteuid(), 0, os.stat(start).st_uid)
    except OSError:
        return False
