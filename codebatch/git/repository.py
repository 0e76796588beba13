"""What git says is in a work tree, asked so that neither the tree nor the user's settings have a say in how.

A repository's own configuration may name programs (`core.fsmonitor`, hooks, transports) and the user's may name further
ignore files. The first must not run, the second must not make one tree two snapshots: both are overridden, and every
`GIT_*` of the environment is dropped. What git answers comes from an index that anyone may have written: a path that
can be in no tree makes the answer void. And git may never answer: it waits for a fifo that is called `.gitignore`, or
lies in its repository, and takes exponential time over some patterns. So nothing waits for it for long. Nor has it all
memory for what never ends: a device in place of its attributes, a tree of ten trees of ten trees.
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
from codebatch.model.text.lazy_patterns import LatePattern
from codebatch.system.clock import running_ns
from codebatch.system.processes.proc import waits_for_fifo

GIT_MEMORY_BYTES_MAX = 4 << 30
"""Of its own, beside the files that it maps: it reads a file of patterns or a tree whole, however long it is."""

_SETTINGS = (
    "core.attributesFile=",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.excludesFile=",
    "core.ignoreCase=false",
    "safe.directory=*",
    "submodule.recurse=false",
)
_ENVIRONMENT = {
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    # A partial clone would fetch what is missing, through whatever transport its configuration names.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
    # glibc would return the memory of each version of a file to the kernel, and ask for it again for the next one.
    "MALLOC_MMAP_THRESHOLD_": "67108864",
    "MALLOC_TRIM_THRESHOLD_": "268435456",
}
# git reads its index for this, and nothing else.
_TRACKED_SECONDS = 30.0
# How often it is looked at whether git is stuck.
_LOOK_SECONDS = 0.2
_LIST = ("ls-files", "-coz", "--deduplicate", "--exclude-per-directory=.gitignore")
_UNREADABLE = LatePattern(rb"warning: (?:could not open directory|unable to access) '(.*?)/?': (.*)")
# Empty, `.` and `..` as parts of a path, a slash at its beginning, and `.git` in whatever case.
_NO_PATH = LatePattern(rb"(?:\A|[\0/])(?:\.\.?|\.git)(?=[/\0])|(?:\A|[\0/])/", re.IGNORECASE)
_NAME_TOO_LONG = os.strerror(errno.ENAMETOOLONG)
_WARNINGS = (b"warning: could not open directory", b"warning: unable to access")
# Of `ls-files -v -s -z`: "H 100644 OBJECT 0<TAB>PATH<NUL>". Any other tag: unmerged, or git does not look at its file.
_INDEXED = LatePattern(rb"[^\t\0]*\t([^\0]*)\0")
_SUBMODULE = LatePattern(rb"(?:\A|\0)(?:H )?160000 (?:commit )?([0-9a-f]+)(?: \d)?\t([^\0]*)")
_UNSEEN = LatePattern(rb"(?:\A|\0)(?!H )[^\0]")


class GitError(Exception):
    """git is not there, is too old, or cannot read this tree; the text says which."""


class GitSilent(GitError):
    """git did not answer in time; it is still at it."""


class GitBlockedError(GitSilent):
    """git waits for a FIFO in the place of a file. No process writes there, so git never answers."""

    def __init__(self) -> None:
        super().__init__("git waits for a FIFO where it expects a file")


class GitListing(msgspec.Struct, frozen=True):
    """git's answer: paths below the directory it was asked in, each ended by NUL; and what it could not read."""

    raw: bytes
    unreadable: tuple[tuple[bytes, str], ...]


class GitIndex(msgspec.Struct, frozen=True):
    """What the index has below a directory. `submodules` are the commits that it names for some of the `paths`;
    `is_seen`: git looks at the files of all paths, and has left none out of the work tree.
    """

    paths: frozenset[bytes]
    submodules: Mapping[bytes, bytes]
    is_seen: bool


class GitList:
    """One running `git ls-files`. `wait` must be called, or `close`."""

    def __init__(self, git: str, directory: bytes, *, is_top: bool) -> None:
        """Start listing a directory. `is_top` says that the repository must begin there and nowhere above."""
        self._process = start_git(git, directory, _LIST, is_top=is_top)

    def wait(self, seconds: float) -> GitListing:
        """The answer. Raises GitError; or GitSilent or GitBlockedError, after which it may be waited for again."""
        output, errors = finish_git(self._process, seconds)
        found = [(each[1], each[2].decode("utf-8", "replace")) for each in _UNREADABLE.finditer(errors)]
        # git cuts its warnings at 4096 bytes, and so the reason off a path that is too long for it.
        if len(found) < sum(map(errors.count, _WARNINGS)) or any(reason == _NAME_TOO_LONG for _, reason in found):
            raise GitError("this project has paths that are too long for git")
        return GitListing(_checked(output), tuple(found))

    def close(self) -> None:
        """End git if nobody waited for it."""
        end_git(self._process)


def find_git() -> str | None:
    """git's path, None where there is none."""
    for directory in filter(None, os.environ.get("PATH", os.defpath).split(os.pathsep)):
        path = os.path.join(directory, "git")
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None  # As shutil.which(3) says, which takes 3 ms to import.


def gitlinks(git: str, directory: bytes, seconds: float, *, is_top: bool) -> set[bytes]:
    """The paths below a directory that the index has as submodules. Raises GitError."""
    found = set()
    for line in ask_git(git, directory, ("ls-files", "-sz"), seconds, is_top=is_top).split(b"\0"):
        mode, _, path = line.partition(b"\t")
        if mode.startswith(b"160000 "):
            found.add(path)
    return found


def tracked(git: str, directory: bytes, seconds: float, *, is_top: bool) -> set[bytes]:
    """The paths below a directory that the index has. Raises GitError.

    Here git looks at no file of the work tree, and at no pattern.
    """
    names = set(_checked(ask_git(git, directory, ("ls-files", "-cz"), seconds, is_top=is_top)).split(b"\0"))
    return names - {b""}


def read_index(git: str, directory: bytes, seconds: float, *, is_top: bool) -> GitIndex:
    """The index, and whether a file of it may differ without git's telling: in a sparse checkout, or where somebody has
    marked it so. Raises GitError.
    """
    told = ask_git(git, directory, ("ls-files", "-v", "-s", "-z"), seconds, is_top=is_top)
    paths = _INDEXED.findall(told)
    _checked(b"\0".join((*paths, b"")))
    return GitIndex(frozenset(paths), _submodules(told), _UNSEEN.search(told) is None)


def committed_submodules(git: str, directory: bytes, seconds: float, *, is_top: bool) -> Mapping[bytes, bytes]:
    """The commits that the newest commit names for submodules below a directory. Raises GitError."""
    return _submodules(ask_git(git, directory, ("ls-tree", "-r", "-z", "HEAD"), seconds, is_top=is_top))


def is_tracked(git: str, directory: bytes, path: bytes) -> bool:
    """Whether the index of the repository that begins in a directory holds a path or anything below it.

    Raises GitError.
    """
    return bool(ask_git(git, directory, ("ls-files", "-z", "--", path), _TRACKED_SECONDS, is_top=True))


def start_git(
    git: str, directory: bytes, arguments: tuple[str | bytes, ...], *, is_top: bool, given: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    """git at work in a directory, with nothing of its settings. `end_git` must be called. Raises GitError.

    `given` is the file that it reads as its input, by default none.
    """
    settings = [part for setting in _SETTINGS for part in ("-c", setting)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | _ENVIRONMENT
    # Named outright, a broken repository is an error and not a reason to look for another one further up; and neither
    # `core.worktree` nor who owns the directory matters.
    where = ["--git-dir=.git", "--work-tree=."] if is_top else []
    try:
        process = subprocess.Popen(
            [git, "--literal-pathspecs", "--no-pager", *where, *settings, *arguments],
            cwd=directory,
            env=environment,
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise GitError(f"git cannot be started: {error.strerror}") from error
    with contextlib.suppress(OSError, ValueError):  # It has ended, or may have less.
        resource.prlimit(process.pid, resource.RLIMIT_DATA, (GIT_MEMORY_BYTES_MAX, GIT_MEMORY_BYTES_MAX))
    return process


def finish_git(process: subprocess.Popen[bytes], seconds: float) -> tuple[bytes, bytes]:
    """Return the output and the warnings of git at its end. Raises GitError, and GitSilent if that takes longer.

    Raises GitBlockedError, and soon, if git waits for a FIFO.
    """
    output, errors = _hear(process, running_ns() + round(seconds * 1e9))
    if process.returncode != 0:
        raise GitError(_first_line(errors) or f"git ended with status {process.returncode}")
    return output, errors


def _hear(process: subprocess.Popen[bytes], end_ns: int) -> tuple[bytes, bytes]:
    """Return what a process wrote, once it has ended. Raises GitSilent."""
    while True:
        left = max(0.0, (end_ns - running_ns()) / 1e9)
        try:
            return process.communicate(timeout=min(left, _LOOK_SECONDS))
        except subprocess.TimeoutExpired as error:
            if waits_for_fifo(process.pid):
                raise GitBlockedError from error
            if left <= _LOOK_SECONDS:
                raise GitSilent("git does not answer") from error


def ask_git(git: str, directory: bytes, arguments: tuple[str | bytes, ...], seconds: float, *, is_top: bool) -> bytes:
    """What git says, whole. Raises GitError, and GitSilent where that takes longer."""
    process = start_git(git, directory, arguments, is_top=is_top)
    try:
        return finish_git(process, seconds)[0]
    finally:
        end_git(process)


def end_git(process: subprocess.Popen[bytes]) -> None:
    """End git if it runs still, and what it was read from."""
    if process.poll() is None:
        process.kill()
    if process.stdout is not None and not process.stdout.closed:
        process.communicate()


def _submodules(told: bytes) -> Mapping[bytes, bytes]:
    return {found[2]: found[1] for found in _SUBMODULE.finditer(told)}


def _checked(names: bytes) -> bytes:
    """An answer in which each path can be one below the directory that was asked about. Raises GitError."""
    wrong = _NO_PATH.search(names)
    if wrong is not None:
        start = names.rfind(b"\0", 0, wrong.start() + 1) + 1
        name = names[start : names.find(b"\0", start)]
        raise GitError(f"git lists the invalid path {display_path(name)}")
    return names


def _first_line(errors: bytes) -> str:
    """Return the first line of an error. A line that ends with a colon has its subject in the next one."""
    first, *others = errors.decode("utf-8", "replace").strip().split("\n")
    more = f" {others[0].strip()}" if first.endswith(":") and others else ""
    return f"{first.removeprefix('fatal: ')}{more}"
