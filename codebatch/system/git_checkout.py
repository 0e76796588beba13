"""Whether what was frozen of a work tree is what its newest commit has.

Asked as `git.py` asks, and besides: to tell whether a file has changed git may run the programs that the repository's
settings call filters; each of them is named, and taken away. What goes through one is then told as changed: a tree is
called clean only where that is sure.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable

from codebatch.system.git import GitError, ask_git, end_git, finish_git, start_git, tracked

_ASKED_SECONDS = 60.0
_STATUS = ("status", "--porcelain=v1", "-z", "-uno", "--ignore-submodules=all", "--no-renames", "--", ".")
_KEYS = (b"clean", b"smudge", b"process")


class AskedCheckout:
    """git at work on whether the files of a directory are as its newest commit has them. `close` must be called."""

    def __init__(self, git: str, directory: bytes, *, is_top: bool) -> None:
        """Raises GitError."""
        self._git, self._directory, self._is_top = git, directory, is_top
        filters = no_filters(git, directory, is_top=is_top)
        self._process: subprocess.Popen[bytes] = start_git(git, directory, (*filters, *_STATUS), is_top=is_top)

    def is_clean(self, paths: Iterable[bytes]) -> bool:
        """Whether the newest commit has all of these paths below the directory, and nothing has changed. Raises
        GitError.
        """
        if finish_git(self._process, _ASKED_SECONDS)[0]:
            return False
        return tracked(self._git, self._directory, _ASKED_SECONDS, is_top=self._is_top).issuperset(paths)

    def close(self) -> None:
        """End git if nobody waited for it."""
        end_git(self._process)


def no_filters(git: str, directory: bytes, *, is_top: bool) -> tuple[bytes, ...]:
    """The settings by which git runs no program over what is in a file. Raises GitError where one cannot be named."""
    told = ask_git(git, directory, ("config", "-z", "--name-only", "--list"), _ASKED_SECONDS, is_top=is_top)
    names = {name[len(b"filter.") :].rpartition(b".")[0] for name in told.split(b"\0") if name.startswith(b"filter.")}
    if any(b"=" in name for name in names):
        raise GitError("a filter of the git repository has a name that cannot be said")
    settings: list[bytes] = []
    for name in sorted(names):
        settings += (part for key in _KEYS for part in (b"-c", b"filter.%b.%b=" % (name, key)))
        settings += (b"-c", b"filter.%b.required=false" % name)
    return tuple(settings)
