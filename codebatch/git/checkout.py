"""Comparison of a frozen work tree with its newest commit.

git is run as repository.py describes. To detect changes, git may also run filter programs from the settings of the
repository, so each filter is disabled by name. Files with a filter then count as changed.

A tree counts as clean only if this is certain. It is uncertain if git does not compare some file: in a sparse checkout,
or if the index marks the file (assume-unchanged, skip-worktree). If a submodule is checked out, it is compared in the
same way.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Container, Iterable, Mapping

from codebatch.git.history import find_head, is_repository_top
from codebatch.git.repository import (
    GitError,
    committed_submodules,
    end_git,
    finish_git,
    query_git,
    read_index,
    start_git,
)

_COMPARISON_SECONDS_MAX = 60.0
# git waits forever for a FIFO named `.gitattributes`, so there is a time limit. It is long, because git may have to
# read all files again.
_STATUS_SECONDS = 10.0
_FILES_PER_SECOND = 1000
_STATUS_ARGUMENTS = ("status", "--porcelain=v1", "-z", "-uno", "--ignore-submodules=all", "--no-renames", "--", ".")
# Maximum depth of nested submodules.
_SUBMODULE_DEPTH_MAX = 16
_FILTER_KEYS = (b"clean", b"smudge", b"process")


class CheckoutComparison:
    """A running git process that compares the files of a directory with the newest commit. Call `close` at the end."""

    def __init__(self, git: str, directory: bytes, *, is_top: bool, depth: int = 0) -> None:
        """Start git. `depth` is the number of repositories that enclose this one as a submodule. Raises GitError."""
        self._git, self._directory, self._is_top, self._submodule_depth = git, directory, is_top, depth
        filters = filter_overrides(git, directory, is_top=is_top)
        self._process: subprocess.Popen[bytes] = start_git(
            git, directory, (*filters, *_STATUS_ARGUMENTS), is_top=is_top
        )

    def is_clean(self, paths: Iterable[bytes]) -> bool:
        """Return whether the newest commit has all `paths`, and git reports no changes.

        `paths` are relative to the directory. Raises GitError.
        """
        expected_paths = {*paths}
        seconds = min(_STATUS_SECONDS + len(expected_paths) / _FILES_PER_SECOND, _COMPARISON_SECONDS_MAX)
        if finish_git(self._process, seconds)[0]:
            return False
        index = read_index(self._git, self._directory, _COMPARISON_SECONDS_MAX, is_top=self._is_top)
        below: dict[bytes, list[bytes]] = {submodule: [] for submodule in index.submodules}
        for path in expected_paths - index.paths:
            submodule = _nearest_ancestor(below, path)
            if submodule is None:
                return False
            below[submodule].append(path[len(submodule) + 1 :])
        return index.is_seen and (not below or self._are_submodules_clean(index.submodules, below))

    def _are_submodules_clean(self, submodules: Mapping[bytes, bytes], below: Mapping[bytes, list[bytes]]) -> bool:
        """Return whether each submodule is clean.

        A submodule is clean if its recorded commit is checked out, nothing has changed, and it has all paths in
        `below`.
        """
        committed = committed_submodules(self._git, self._directory, _COMPARISON_SECONDS_MAX, is_top=self._is_top)
        return committed == submodules and all(
            is_submodule_clean(
                self._git,
                self._directory,
                path,
                commit.decode("ascii"),
                below[path],
                is_top=self._is_top,
                depth=self._submodule_depth,
            )
            for path, commit in submodules.items()
        )

    def close(self) -> None:
        """End git if it still runs."""
        end_git(self._process)


def is_submodule_clean(
    git: str, outer: bytes, path: bytes, commit: str, paths: Iterable[bytes], *, is_top: bool = True, depth: int = 0
) -> bool:
    """Return whether a submodule of a directory has exactly the files of a commit, or is not checked out and empty.

    `paths` are its files, relative to it. `depth` is the number of repositories that enclose the outer one as a
    submodule. Raises GitError.
    """
    directory = os.path.join(outer, path)
    if not is_repository_top(directory):  # Not checked out. git reports no files there.
        return not [*paths]
    if depth == _SUBMODULE_DEPTH_MAX or not _owns_repository(git, outer, directory, is_top=is_top):
        return False
    if find_head(git, directory).commit != commit:
        return False
    checkout = CheckoutComparison(git, directory, is_top=True, depth=depth + 1)
    try:
        return checkout.is_clean(paths)
    finally:
        checkout.close()


def _owns_repository(git: str, outer: bytes, submodule: bytes, *, is_top: bool) -> bool:
    """Return whether the repository of a submodule is inside it, or in `modules/` of the outer repository.

    If this were not required, a `.git` file could name any other repository, in which these files are clean.
    """
    inside = os.path.join(submodule, b".git")
    if os.path.isdir(inside):
        return not os.path.islink(inside)
    repository = _repository_at(git, outer, is_top=is_top)
    return _repository_at(git, submodule, is_top=True).startswith(os.path.join(repository, b"modules", b""))


def _nearest_ancestor(directories: Container[bytes], path: bytes) -> bytes | None:
    while path := os.path.dirname(path):
        if path in directories:
            return path
    return None


def _repository_at(git: str, directory: bytes, *, is_top: bool) -> bytes:
    output = query_git(git, directory, ("rev-parse", "--absolute-git-dir"), _COMPARISON_SECONDS_MAX, is_top=is_top)
    return os.path.realpath(output.removesuffix(b"\n"))


def count_uncommitted_changes(git: str, top: bytes) -> int:
    """Return how many paths of a repository differ from its newest commit. Ignored paths do not count.

    A directory without any tracked file counts once. Raises GitError.
    """
    filters = filter_overrides(git, top, is_top=True)
    arguments = ("status", "--porcelain=v1", "-z", "-unormal", "--ignore-submodules=all", "--no-renames")
    return query_git(git, top, (*filters, *arguments), _COMPARISON_SECONDS_MAX, is_top=True).count(b"\0")


def filter_overrides(git: str, directory: bytes, *, is_top: bool) -> tuple[bytes, ...]:
    """Return settings for git that disable all filter programs. Raises GitError if a filter cannot be named."""
    output = query_git(
        git, directory, ("config", "-z", "--name-only", "--list"), _COMPARISON_SECONDS_MAX, is_top=is_top
    )
    names = {name[len(b"filter.") :].rpartition(b".")[0] for name in output.split(b"\0") if name.startswith(b"filter.")}
    if any(b"=" in name for name in names):
        raise GitError("a filter of the git repository has an unsupported name")
    settings: list[bytes] = []
    for name in sorted(names):
        settings += (part for key in _FILTER_KEYS for part in (b"-c", b"filter.%b.%b=" % (name, key)))
        settings += (b"-c", b"filter.%b.required=false" % name)
    return tuple(settings)
