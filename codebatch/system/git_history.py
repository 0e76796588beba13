"""How often files were changed in the last year, as git tells it of the history of a work tree.

Asked as `git.py` asks: no setting of the repository has a say. What is read is bounded in commits, bytes and time; what
was counted by then is what there is of it, newest first, and it says so. git may tell of any path, and of none twice in
one commit; nothing is done with it but to count those that are asked for.
"""

from __future__ import annotations

import os
import selectors
import subprocess
from collections import Counter
from collections.abc import Iterator

import msgspec

from codebatch.system.clock import running_ns
from codebatch.system.git import GitError, ask_git, end_git, start_git

YEAR_SECONDS = 365 * 24 * 60 * 60
COMMITS_MAX = 100_000
HISTORY_SECONDS_MAX = 10.0
HISTORY_BYTES_MAX = 256 << 20

_HEAD_SECONDS = 5.0
_READ_BYTES = 1 << 16
_STANDING = ("rev-parse", "--is-shallow-repository", "HEAD^{commit}", "HEAD:./")
# Of a hostile repository: no program for signatures, no file of orders or of names, no other log.
_QUIET = (
    "--no-show-signature", "--no-mailmap", "--no-decorate", "--no-notes", "--no-color", "--no-ext-diff",
    "--no-textconv", "-O/dev/null",
)  # fmt: skip
_COMMIT = b"/"
"""What stands before a commit; a path that git has begins otherwise."""


class Head(msgspec.Struct, frozen=True):
    """The newest commit of a work tree. `is_shallow`: what was before some commit is not there."""

    commit: str
    is_shallow: bool


class History(msgspec.Struct, frozen=True, kw_only=True):
    """In how many of the `commits` of the year before the newest one each file was changed, below one directory.

    Merges are no changes, nor is the oldest commit of a shallow repository, which seems to make every file. `is_cut`:
    there are older commits of that year, of which nothing is known.
    """

    changes: dict[bytes, int]
    commits: int
    is_cut: bool


def find_head(git: str, directory: bytes) -> Head:
    """The newest commit that has files below a directory. Raises GitError where there is none."""
    try:
        told = ask_git(git, directory, _STANDING, _HEAD_SECONDS, is_top=begins_in(directory)).split()
    except GitError as error:
        if str(error).startswith("ambiguous argument"):  # So git says that it does not know it.
            raise GitError("the git repository has no commit that can be read") from error
        raise
    if len(told) != 3:
        raise GitError("git does not say which commit is the newest")
    return Head(told[1].decode("ascii", "replace"), told[0] == b"true")


def read_history(
    git: str,
    directory: bytes,
    head: Head,
    *,
    commits_max: int = COMMITS_MAX,
    seconds_max: float = HISTORY_SECONDS_MAX,
    bytes_max: int = HISTORY_BYTES_MAX,
) -> History:
    """How often what lies below a directory was changed in the year before a commit. Raises GitError."""
    is_top = begins_in(directory)
    newest = ask_git(
        git, directory, ("log", "-1", *_QUIET, "--format=%ct", head.commit, "--"), _HEAD_SECONDS, is_top=is_top
    )
    since = max(int(newest) - YEAR_SECONDS, 0) if newest.strip().isdigit() else 0
    process = start_git(
        git,
        directory,
        (
            "-c", "log.follow=false", "-c", f"log.showRoot={'false' if head.is_shallow else 'true'}",
            "log", *_QUIET, f"--max-age={since}", f"--max-count={commits_max + 1}", "--no-merges", "--no-renames",
            "--ignore-submodules=none", "--name-only", "-z", "--relative", "--format=%x2f", head.commit, "--", ".",
        ),
        is_top=is_top,
    )  # fmt: skip
    try:
        return _count(process, commits_max, seconds_max, bytes_max)
    finally:
        end_git(process)


def _count(process: subprocess.Popen[bytes], commits_max: int, seconds_max: float, bytes_max: int) -> History:
    counted: Counter[bytes] = Counter()
    commits, read_bytes = 0, 0
    rest, before = b"", b""
    for data in _iter_output(process, running_ns() + round(seconds_max * 1e9)):
        read_bytes += len(data or b"")
        if data is None or read_bytes > bytes_max:
            return History(changes=dict(counted), commits=commits, is_cut=True)
        *names, rest = (rest + data).split(b"\0")
        for name in names:
            if name != _COMMIT:
                counted[name[1:] if before == _COMMIT else name] += 1  # Before the first path git ends a line.
            elif commits == commits_max:
                return History(changes=dict(counted), commits=commits, is_cut=True)
            else:
                commits += 1
            before = name
    if process.wait() != 0:
        raise GitError(f"git ended with status {process.returncode}")
    return History(changes=dict(counted), commits=commits, is_cut=False)


def _iter_output(process: subprocess.Popen[bytes], end_ns: int) -> Iterator[bytes | None]:
    """What git says, as it comes; None where the time is up. What it warns of is read too, lest it wait for that."""
    assert process.stdout is not None
    assert process.stderr is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        selector.register(process.stderr, selectors.EVENT_READ)
        while selector.get_map():
            left_ns = end_ns - running_ns()
            ready = selector.select(max(left_ns, 0) / 1e9)
            if left_ns <= 0 or not ready:
                yield None
                return
            for key, _ in ready:
                data = os.read(key.fd, _READ_BYTES)
                if not data:
                    selector.unregister(key.fileobj)
                elif key.fileobj is process.stdout:
                    yield data


def begins_in(directory: bytes) -> bool:
    """Whether a repository begins in a directory, and not above it."""
    return os.path.lexists(os.path.join(directory, b".git"))
