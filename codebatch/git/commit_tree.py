"""The files of a commit in a scratch directory: a separate work tree that the repository's settings do not affect.

Only the objects of the repository are read. The index, the files and the settings belong to the scratch directory. So
nothing is written to the repository, and none of its hooks and filters runs.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence

from codebatch.git.ancestry import Repository, is_commit
from codebatch.git.repository import GitError, query_git, tracked_paths
from codebatch.model.text.quantities import human_bytes
from codebatch.system.files.memory_scratch import try_memory_scratch

_QUERY_SECONDS = 30.0
_CHECKOUT_SECONDS = 600.0
_PAGE_BYTES = 4096
# Maximum number of paths in the arguments of a command.
_PATHS_MAX = 500
# Free space that a scratch directory requires. In memory: this many times the size of the tree, plus a fixed size,
# because other programs need memory too. On disk: the size of the tree, plus the fixed size.
_FREE_SPACE_FACTOR = 4
_FREE_BYTES_MIN = 256 << 20


@contextlib.contextmanager
def check_out_commit(
    repository: Repository, commit: str, other: str = "", paths: Sequence[bytes] = ()
) -> Iterator[bytes]:
    """Yield a temporary work tree that has the content of the repository's directory in a commit.

    The files at `paths` are those of the commit `other` instead: a file that `other` lacks does not exist. Raises
    GitError if the directory does not exist in the commit. Also raises GitError if the files would differ from a
    checkout, because the commit has submodules or files with a filter. Raises OSError if the disk is full.
    """
    if not all(map(is_commit, filter(None, (commit, other)))) or not commit:
        raise GitError(f"{commit[:80]!r} is not a commit")
    with _scratch_directory(_tree_bytes(repository, commit)) as scratch:
        top = os.path.join(os.fsencode(os.path.realpath(scratch)), b"tree")
        prefix = repository.query("rev-parse", "--show-prefix").removesuffix(b"\n")
        _check_out(repository, commit, top, other, [prefix + path for path in paths])
        directory = os.path.join(top, prefix).rstrip(b"/")
        if not os.path.isdir(directory):
            raise GitError(f"commit {commit[:12]} does not have this directory")
        yield directory


def _tree_bytes(repository: Repository, commit: str) -> int:
    """Return an upper bound of the disk space of a commit's tree in bytes.

    Raises GitError, also if the commit has submodules.
    """
    size_bytes = 0
    for line in repository.query("ls-tree", "-r", "-l", "-z", "--full-tree", commit).split(b"\0"):
        mode, *_, size = line.partition(b"\t")[0].split() or (b"", b"0")
        if mode == b"160000":
            raise GitError(f"commit {commit[:12]} has submodules, whose content is in other repositories")
        size_bytes += int(size) + _PAGE_BYTES if size.isdigit() else _PAGE_BYTES
    return size_bytes


@contextlib.contextmanager
def _scratch_directory(size_bytes: int) -> Iterator[str]:
    """Yield an empty directory, and remove it afterwards. Raises GitError if there is no room for `size_bytes`.

    The directory is in memory if enough memory is free, because writing thousands of files to memory takes an eighth of
    the time.
    """
    in_memory = try_memory_scratch(free_bytes=size_bytes * _FREE_SPACE_FACTOR + _FREE_BYTES_MIN)
    if in_memory is not None:
        try:
            yield str(in_memory.path)
        finally:
            in_memory.remove()
        return
    if shutil.disk_usage(tempfile.gettempdir()).free < size_bytes + _FREE_BYTES_MIN:
        needed = human_bytes(size_bytes + _FREE_BYTES_MIN)
        raise GitError(
            f"not enough space for {human_bytes(size_bytes)} in {tempfile.gettempdir()}: {needed} must be free"
        )
    with tempfile.TemporaryDirectory(prefix="codebatch-", ignore_cleanup_errors=True) as path:
        yield path


def _check_out(repository: Repository, commit: str, top: bytes, other: str, paths: Sequence[bytes]) -> None:
    git = repository.git_program
    objects = os.path.join(
        repository.directory, repository.query("rev-parse", "--git-path", "objects").removesuffix(b"\n")
    )
    if b"\n" in objects:
        raise GitError("git does not support the path of its objects")
    object_format = repository.query("rev-parse", "--show-object-format").decode("ascii", "replace").strip()
    os.mkdir(top)
    query_git(
        git, top, ("init", "-q", "--template=", f"--object-format={object_format}", "."), _QUERY_SECONDS, is_top=False
    )
    with open(os.path.join(top, b".git/objects/info/alternates"), "wb") as file:
        file.write(os.path.realpath(objects) + b"\n")
    query_git(git, top, ("read-tree", commit), _QUERY_SECONDS, is_top=True)
    for at in range(0, len(paths), _PATHS_MAX):
        reset = ("--literal-pathspecs", "reset", "-q", other, "--")
        query_git(git, top, (*reset, *paths[at : at + _PATHS_MAX]), _QUERY_SECONDS, is_top=True)
    query_git(git, top, ("checkout-index", "-q", "-a"), _CHECKOUT_SECONDS, is_top=True)
    for path in tracked_paths(git, top, _QUERY_SECONDS, is_top=True):
        if os.path.basename(path) == b".gitattributes" and _sets_filter_attribute(os.path.join(top, path)):
            raise GitError(f"commit {commit[:12]} has files that need a git filter")


def _sets_filter_attribute(path: bytes) -> bool:
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return b"filter=" in file.read()
