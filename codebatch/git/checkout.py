"""Whether what was frozen of a work tree is what its newest commit has.

Asked as `git.py` asks, and besides: to tell whether a file has changed git may run the programs that the repository's
settings call filters; each of them is named, and taken away. What goes through one is then told as changed: a tree is
called clean only where that is sure. So it is not where git does not look at some file, for the checkout is sparse or
somebody said so. A submodule that is checked out is asked for itself.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Container, Iterable, Mapping

from codebatch.git.history import begins_in, find_head
from codebatch.git.repository import GitError, ask_git, committed_submodules, end_git, finish_git, read_index, start_git

_ASKED_SECONDS = 60.0
# git waits for a fifo that is called `.gitattributes`. It may have to read all files again.
_PATIENCE_SECONDS = 10.0
_FILES_A_SECOND = 1000
_STATUS = ("status", "--porcelain=v1", "-z", "-uno", "--ignore-submodules=all", "--no-renames", "--", ".")
# Of submodules in submodules.
_DEPTH_MAX = 16
_KEYS = (b"clean", b"smudge", b"process")


class AskedCheckout:
    """git at work on whether the files of a directory are as its newest commit has them. `close` must be called."""

    def __init__(self, git: str, directory: bytes, *, is_top: bool, depth: int = 0) -> None:
        """`depth`: of so many repositories it is a submodule. Raises GitError."""
        self._git, self._directory, self._is_top, self._depth = git, directory, is_top, depth
        filters = no_filters(git, directory, is_top=is_top)
        self._process: subprocess.Popen[bytes] = start_git(git, directory, (*filters, *_STATUS), is_top=is_top)

    def is_clean(self, paths: Iterable[bytes]) -> bool:
        """Whether the newest commit has all of these paths below the directory, and nothing has changed. Raises
        GitError.
        """
        wanted = {*paths}
        patience = min(_PATIENCE_SECONDS + len(wanted) / _FILES_A_SECOND, _ASKED_SECONDS)
        if finish_git(self._process, patience)[0]:
            return False
        index = read_index(self._git, self._directory, _ASKED_SECONDS, is_top=self._is_top)
        below: dict[bytes, list[bytes]] = {submodule: [] for submodule in index.submodules}
        for path in wanted - index.paths:
            submodule = _ancestor_among(below, path)
            if submodule is None:
                return False
            below[submodule].append(path[len(submodule) + 1 :])
        return index.is_seen and (not below or self._are_clean(index.submodules, below))

    def _are_clean(self, submodules: Mapping[bytes, bytes], below: Mapping[bytes, list[bytes]]) -> bool:
        """Whether each submodule is at the commit that the newest one names for it, and has these paths below it."""
        committed = committed_submodules(self._git, self._directory, _ASKED_SECONDS, is_top=self._is_top)
        return committed == submodules and all(
            self._is_submodule_clean(path, commit.decode("ascii"), below[path]) for path, commit in submodules.items()
        )

    def _is_submodule_clean(self, path: bytes, commit: str, paths: list[bytes]) -> bool:
        directory = os.path.join(self._directory, path)
        if not begins_in(directory):  # It is not checked out, and git says nothing of what lies there.
            return not paths
        if self._depth == _DEPTH_MAX or not self._has_as_its_own(directory):
            return False
        if find_head(self._git, directory).commit != commit:
            return False
        asked = AskedCheckout(self._git, directory, is_top=True, depth=self._depth + 1)
        try:
            return asked.is_clean(paths)
        finally:
            asked.close()

    def _has_as_its_own(self, submodule: bytes) -> bool:
        """Whether the repository of a submodule lies in it, or where git puts it: in the one that it is a part of.

        Else what a file `.git` names would say for somebody else's files that they are these.
        """
        inside = os.path.join(submodule, b".git")
        if os.path.isdir(inside):
            return not os.path.islink(inside)
        outer = _repository_at(self._git, self._directory, is_top=self._is_top)
        return _repository_at(self._git, submodule, is_top=True).startswith(os.path.join(outer, b"modules", b""))

    def close(self) -> None:
        """End git if nobody waited for it."""
        end_git(self._process)


def _ancestor_among(directories: Container[bytes], path: bytes) -> bytes | None:
    while path := os.path.dirname(path):
        if path in directories:
            return path
    return None


def _repository_at(git: str, directory: bytes, *, is_top: bool) -> bytes:
    told = ask_git(git, directory, ("rev-parse", "--absolute-git-dir"), _ASKED_SECONDS, is_top=is_top)
    return os.path.realpath(told.removesuffix(b"\n"))


def no_filters(git: str, directory: bytes, *, is_top: bool) -> tuple[bytes, ...]:
    """The settings by which git runs no program over what is in a file. Raises GitError where one cannot be named."""
    told = ask_git(git, directory, ("config", "-z", "--name-only", "--list"), _ASKED_SECONDS, is_top=is_top)
    names = {name[len(b"filter.") :].rpartition(b".")[0] for name in told.split(b"\0") if name.startswith(b"filter.")}
    if any(b"=" in name for name in names):
        raise GitError("a filter of the git repository has an unsupported name")
    settings: list[bytes] = []
    for name in sorted(names):
        settings += (part for key in _KEYS for part in (b"-c", b"filter.%b.%b=" % (name, key)))
        settings += (b"-c", b"filter.%b.required=false" % name)
    return tuple(settings)
