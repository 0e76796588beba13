"""Running of git for queries of work trees. Neither files of the tree nor settings of the user affect the results.

The configuration of a repository may name programs (`core.fsmonitor`, hooks, transports), which must not run. The
user's configuration may name further ignore files, which must not change snapshots. Both are overridden, and all
`GIT_*` variables are removed from the environment.

The output of git depends on an untrusted index. If the output has a path that no tree can contain, it is rejected. git
may run forever: it waits for a FIFO named `.gitignore` or in its repository, and takes exponential time for some
patterns. So every query has a time limit. Input may be endless: a device in place of the attributes file, or a tree of
exponential size. So memory is limited too.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import resource
import subprocess
from collections.abc import Mapping

import msgspec

from codebatch.model.entry import display_path
from codebatch.system.processes.environment import program_directories
from codebatch.system.processes.proc import waits_for_fifo
from codebatch.system.processes.process_timer import ProcessTimer

GIT_MEMORY_BYTES_MAX = 4 << 30
"""Limit of git's memory in bytes, not counting mapped files.

It is needed because git reads pattern files and trees of any size into memory.
"""

_GIT_SETTINGS = (
    "core.attributesFile=",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.excludesFile=",
    "core.ignoreCase=false",
    "safe.directory=*",
    "submodule.recurse=false",
)
_GIT_ENVIRONMENT = {
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    # Without this setting, a partial clone would fetch missing objects through the transport in its configuration.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
    # Without this setting, glibc returns the memory after each file version to the kernel, and requests it again for
    # the next version.
    "MALLOC_MMAP_THRESHOLD_": "67108864",
    "MALLOC_TRIM_THRESHOLD_": "268435456",
}
# The variables that make git ignore the settings of the user, and the user's variables that they replace.
_NO_USER_SETTINGS = ("GIT_ATTR_NOSYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL")
_USER_VARIABLES = ("GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_CONFIG")
# For this query, git reads only its index.
_INDEX_SECONDS_MAX = 30.0
# Interval in seconds at which a process that waits for git tests whether git is blocked.
_POLL_SECONDS = 0.2
_LIST_ARGUMENTS = ("ls-files", "-coz", "--deduplicate", "--exclude-per-directory=.gitignore")
_UNREADABLE_PATH_WARNING = re.compile(rb"warning: (?:could not open directory|unable to access) '(.*?)/?': (.*)")
# Invalid parts of paths: a component that is empty, `.`, `..`, or `.git` in any case; a slash at the beginning.
_INVALID_PATH = re.compile(rb"(?:\A|[\0/])(?:\.\.?|\.git)(?=[/\0])|(?:\A|[\0/])/", re.IGNORECASE)
_NAME_TOO_LONG = os.strerror(errno.ENAMETOOLONG)
_KNOWN_WARNINGS = (b"warning: could not open directory", b"warning: unable to access")
# Output of `ls-files -v -s -z`: "H 100644 OBJECT 0<TAB>PATH<NUL>". A tag other than H means that the file is unmerged,
# or that git does not compare it.
_INDEX_ENTRY_PATH = re.compile(rb"[^\t\0]*\t([^\0]*)\0")
_SUBMODULE_ENTRY = re.compile(rb"(?:\A|\0)(?:H )?160000 (?:commit )?([0-9a-f]+)(?: \d)?\t([^\0]*)")
_FLAGGED_ENTRY = re.compile(rb"(?:\A|\0)(?!H )[^\0]")


class GitError(Exception):
    """git is missing or too old, or cannot read this tree. The message is the reason."""


class GitTimedOut(GitError):
    """The error that git did not finish within the time limit. git still runs."""


class GitBlockedError(GitTimedOut):
    """The error that git waits for a FIFO at a path where it expects a file.

    No process writes to it, so git would wait forever.
    """

    def __init__(self) -> None:
        super().__init__("git waits for a FIFO where it expects a file")


class GitFileList(msgspec.Struct, frozen=True):
    """A list of files by git: paths below a directory, each followed by NUL.

    Unreadable paths are listed with reasons.
    """

    raw: bytes
    unreadable: tuple[tuple[bytes, str], ...]


class GitIndex(msgspec.Struct, frozen=True):
    """The part of a repository's index that is below a directory.

    `submodules` maps the paths of submodules to their commits.

    If `is_seen` is set, git compares every file in the index with the work tree. Otherwise git skips some, for example
    in a sparse checkout.
    """

    paths: frozenset[bytes]
    submodules: Mapping[bytes, bytes]
    is_seen: bool


class FileListProcess:
    """A running `git ls-files`. Call `wait` or `close`."""

    def __init__(self, git: str, directory: bytes, *, is_top: bool) -> None:
        """Start to list a directory. `is_top` is set if the directory is the top of its repository."""
        self._process = start_git(git, directory, _LIST_ARGUMENTS, is_top=is_top)

    def wait(self, seconds: float) -> GitFileList:
        """Return the list, after at most `seconds`. Raises GitError.

        After GitSilent or GitBlockedError, this may be called again.
        """
        output, errors = finish_git(self._process, seconds)
        unreadable = [
            (match[1], match[2].decode("utf-8", "replace")) for match in _UNREADABLE_PATH_WARNING.finditer(errors)
        ]
        # git truncates warnings at 4096 bytes. If the path in a warning is very long, the reason after it is missing.
        if len(unreadable) < sum(map(errors.count, _KNOWN_WARNINGS)) or any(
            reason == _NAME_TOO_LONG for _, reason in unreadable
        ):
            raise GitError("this project has paths that are too long for git")
        return GitFileList(_check_names(output), tuple(unreadable))

    def close(self) -> None:
        """End git if it still runs."""
        end_git(self._process)


def find_git() -> str | None:
    """Return the path of git, or None if it is not installed. It is not searched in relative directories."""
    for directory in program_directories():
        path = os.path.join(directory, "git")
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def submodule_paths(git: str, directory: bytes, seconds: float, *, is_top: bool) -> set[bytes]:
    """Return the paths of the submodules in the index that are below a directory. Raises GitError."""
    paths = set()
    for line in query_git(git, directory, ("ls-files", "-sz"), seconds, is_top=is_top).split(b"\0"):
        mode, _, path = line.partition(b"\t")
        if mode.startswith(b"160000 "):
            paths.add(path)
    return paths


def tracked_paths(git: str, directory: bytes, seconds: float, *, is_top: bool) -> set[bytes]:
    """Return the paths in the index that are below a directory. Raises GitError.

    For this query, git reads neither files of the work tree nor ignore patterns.
    """
    names = set(_check_names(query_git(git, directory, ("ls-files", "-cz"), seconds, is_top=is_top)).split(b"\0"))
    return names - {b""}


def read_index(git: str, directory: bytes, seconds: float, *, is_top: bool) -> GitIndex:
    """Return the part of the index below a directory.

    `is_seen` shows whether git compares all its files with the work tree.

    git does not compare all of them in a sparse checkout, or if the index marks files (assume-unchanged,
    skip-worktree). Raises GitError.
    """
    output = query_git(git, directory, ("ls-files", "-v", "-s", "-z"), seconds, is_top=is_top)
    paths = _INDEX_ENTRY_PATH.findall(output)
    _check_names(b"\0".join((*paths, b"")))
    return GitIndex(frozenset(paths), _parse_submodules(output), _FLAGGED_ENTRY.search(output) is None)


def committed_submodules(git: str, directory: bytes, seconds: float, *, is_top: bool) -> Mapping[bytes, bytes]:
    """Map the paths of submodules below a directory to the commits that HEAD records for them. Raises GitError."""
    return _parse_submodules(query_git(git, directory, ("ls-tree", "-r", "-z", "HEAD"), seconds, is_top=is_top))


def is_tracked(git: str, directory: bytes, path: bytes) -> bool:
    """Return whether the index contains a path or a path below it. `directory` must be the top of the repository.

    Raises GitError.
    """
    return bool(query_git(git, directory, ("ls-files", "-z", "--", path), _INDEX_SECONDS_MAX, is_top=True))


def start_git(
    git: str,
    directory: bytes,
    arguments: tuple[str | bytes, ...],
    *,
    is_top: bool,
    input_descriptor: int = subprocess.DEVNULL,
    has_user_settings: bool = False,
) -> subprocess.Popen[bytes]:
    """Start git in a directory, without settings of the user and without dangerous settings of the repository.

    The caller must call `end_git`. Raises GitError.

    `input_descriptor` is the file descriptor for standard input. By default there is no input. With
    `has_user_settings`, git reads the settings of the user too, which name the author of commits.
    """
    settings = [part for setting in _GIT_SETTINGS for part in ("-c", setting)]
    environment = _git_environment(has_user_settings=has_user_settings)
    # The repository is named explicitly. So if it is broken, git reports an error and does not search the parent
    # directories. Also, `core.worktree` and the owner of the directory have no effect.
    where = ["--git-dir=.git", "--work-tree=."] if is_top else []
    try:
        process = subprocess.Popen(
            [git, "--literal-pathspecs", "--no-pager", *where, *settings, *arguments],
            cwd=directory,
            env=environment,
            stdin=input_descriptor,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise GitError(f"git cannot be started: {error.strerror}") from error
    with contextlib.suppress(OSError, ValueError):  # git has ended, or has a lower hard limit.
        resource.prlimit(process.pid, resource.RLIMIT_DATA, (GIT_MEMORY_BYTES_MAX, GIT_MEMORY_BYTES_MAX))
    return process


def _git_environment(*, has_user_settings: bool) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | _GIT_ENVIRONMENT
    if has_user_settings:
        for name in _NO_USER_SETTINGS:
            del environment[name]
        environment |= {name: value for name, value in os.environ.items() if name.startswith(_USER_VARIABLES)}
    return environment


def finish_git(process: subprocess.Popen[bytes], seconds: float) -> tuple[bytes, bytes]:
    """Wait at most `seconds` until git ends.

    Return its output and its warnings. Raises GitError, or GitSilent after that time.

    If git begins to wait for a FIFO, raises GitBlockedError soon afterwards.
    """
    output, errors = _wait_and_read(process, seconds)
    if process.returncode != 0:
        raise GitError(first_error_line(errors) or f"git ended with status {process.returncode}")
    return output, errors


def _wait_and_read(process: subprocess.Popen[bytes], seconds: float) -> tuple[bytes, bytes]:
    """Wait until a process ends. Return its output and warnings. Raises GitSilent or GitBlockedError."""
    timer = ProcessTimer(process.pid)
    while True:
        remaining = max(0.0, seconds - timer.seconds())
        try:
            return process.communicate(timeout=min(remaining, _POLL_SECONDS))
        except subprocess.TimeoutExpired as error:
            if waits_for_fifo(process.pid):
                raise GitBlockedError from error
            if remaining <= _POLL_SECONDS:
                raise GitTimedOut("git does not answer") from error


def query_git(git: str, directory: bytes, arguments: tuple[str | bytes, ...], seconds: float, *, is_top: bool) -> bytes:
    """Run git and return its output. Raises GitError, or GitSilent if it does not end within `seconds`."""
    process = start_git(git, directory, arguments, is_top=is_top)
    try:
        return finish_git(process, seconds)[0]
    finally:
        end_git(process)


def end_git(process: subprocess.Popen[bytes]) -> None:
    """End git if it still runs, and close its pipes."""
    if process.poll() is None:
        process.kill()
    if process.stdout is not None and not process.stdout.closed:
        process.communicate()


def _parse_submodules(output: bytes) -> Mapping[bytes, bytes]:
    return {match[2]: match[1] for match in _SUBMODULE_ENTRY.finditer(output)}


def _check_names(names: bytes) -> bytes:
    """Return the names in git's output unchanged.

    Raises GitError if one is not a possible path below the queried directory.
    """
    invalid = _INVALID_PATH.search(names)
    if invalid is not None:
        start = names.rfind(b"\0", 0, invalid.start() + 1) + 1
        name = names[start : names.find(b"\0", start)]
        raise GitError(f"git lists the invalid path {display_path(name)}")
    return names


def first_error_line(errors: bytes) -> str:
    """Return the first line of git's error message. If this line ends with a colon, also return the next line."""
    first, *other_lines = errors.decode("utf-8", "replace").strip().split("\n")
    more = f" {other_lines[0].strip()}" if first.endswith(":") and other_lines else ""
    return f"{first.removeprefix('fatal: ')}{more}"
