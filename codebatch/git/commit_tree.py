"""The tree of a commit, in a scratch directory: a work tree of its own, in which nothing of the repository has a say.

Of the repository its objects alone are read. The index, the files and the settings are the scratch directory's, and so
nothing is written to the repository, and none of its hooks and filters is known.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator

from codebatch.git.ancestry import Repository, is_commit
from codebatch.git.history import begins_in
from codebatch.git.repository import GitError, ask_git, tracked
from codebatch.model.text.quantities import human_bytes
from codebatch.system.files.memory_scratch import try_memory_scratch

_ASKED_SECONDS = 30.0
_WRITTEN_SECONDS = 600.0
_PAGE_BYTES = 4096
# What is left to others.
_FREE_TIMES = 4
_FREE_BYTES = 256 << 20


@contextlib.contextmanager
def tree_of(repository: Repository, commit: str) -> Iterator[bytes]:
    """The directory of a repository as it is in a commit, for the time being.

    Raises GitError, also where its files would not be what a checkout has: of submodules, and of what goes through a
    filter. Raises OSError where there is no room.
    """
    if not is_commit(commit):
        raise GitError(f"{commit[:80]!r} is not a commit")
    with _scratch(_tree_bytes(repository, commit)) as scratch:
        top = os.path.join(os.fsencode(os.path.realpath(scratch)), b"tree")
        _check_out(repository, commit, top)
        directory = os.path.join(top, _ask(repository, "rev-parse", "--show-prefix")).rstrip(b"/")
        if not os.path.isdir(directory):
            raise GitError(f"commit {commit[:12]} does not have this directory")
        yield directory


def _tree_bytes(repository: Repository, commit: str) -> int:
    """What the tree of a commit takes on a disk. Raises GitError, also where it has submodules."""
    taken = 0
    for line in _ask(repository, "ls-tree", "-r", "-l", "-z", "--full-tree", commit).split(b"\0"):
        mode, *_, size = line.partition(b"\t")[0].split() or (b"", b"0")
        if mode == b"160000":
            raise GitError(f"commit {commit[:12]} has submodules, whose content is in other repositories")
        taken += int(size) + _PAGE_BYTES if size.isdigit() else _PAGE_BYTES
    return taken


@contextlib.contextmanager
def _scratch(size_bytes: int) -> Iterator[str]:
    """An empty directory with room for that much, in memory where that has room for four times as much: to write
    thousands of files costs a disk's file system eight times what it costs memory. Raises GitError without room.
    """
    in_memory = try_memory_scratch(free_bytes=size_bytes * _FREE_TIMES + _FREE_BYTES)
    if in_memory is not None:
        try:
            yield str(in_memory.path)
        finally:
            in_memory.remove()
        return
    if shutil.disk_usage(tempfile.gettempdir()).free < size_bytes + _FREE_BYTES:
        needed = human_bytes(size_bytes + _FREE_BYTES)
        raise GitError(
            f"not enough space for {human_bytes(size_bytes)} in {tempfile.gettempdir()}: {needed} must be free"
        )
    with tempfile.TemporaryDirectory(prefix="codebatch-", ignore_cleanup_errors=True) as path:
        yield path


def _check_out(repository: Repository, commit: str, top: bytes) -> None:
    git = repository.git
    objects = os.path.join(repository.directory, _ask(repository, "rev-parse", "--git-path", "objects"))
    if b"\n" in objects:
        raise GitError("git does not support the path of its objects")
    hashes = _ask(repository, "rev-parse", "--show-object-format").decode("ascii", "replace")
    os.mkdir(top)
    ask_git(git, top, ("init", "-q", "--template=", f"--object-format={hashes}", "."), _ASKED_SECONDS, is_top=False)
    with open(os.path.join(top, b".git/objects/info/alternates"), "wb") as file:
        file.write(os.path.realpath(objects) + b"\n")
    ask_git(git, top, ("read-tree", commit), _ASKED_SECONDS, is_top=True)
    ask_git(git, top, ("checkout-index", "-q", "-a"), _WRITTEN_SECONDS, is_top=True)
    for path in tracked(git, top, _ASKED_SECONDS, is_top=True):
        if os.path.basename(path) == b".gitattributes" and _names_filter(os.path.join(top, path)):
            raise GitError(f"commit {commit[:12]} has files that need a git filter")


def _names_filter(path: bytes) -> bool:
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return b"filter=" in file.read()


def _ask(repository: Repository, *arguments: str) -> bytes:
    """What git says, which may hold any byte, without the line end behind it."""
    told = ask_git(
        repository.git, repository.directory, arguments, _ASKED_SECONDS, is_top=begins_in(repository.directory)
    )
    return told.removesuffix(b"\n")
