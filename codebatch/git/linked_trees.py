"""Linked work trees of the user's repository, in which commands of work batches work (git-worktree(1)).

Unlike the queries in repository.py, git uses the settings and filters of the user here, because the files must equal
those of any other checkout. Only hooks and file system monitors do not run.

Adding and removing change the directory `worktrees` of the repository, and git does not protect it against all races.
So the caller holds a lock meanwhile. The files are written without the lock.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from typing import NamedTuple

from codebatch.git.repository import GitError, end_git, finish_git, first_error_line, query_git, start_git
from codebatch.model.entry import display_path
from codebatch.system.files.regular_files import read_regular

_POLL_SECONDS = 0.1
_MERGE_SECONDS_MAX = 60.0
_QUERY_SECONDS_MAX = 60.0
_EXCLUDES_BYTES_MAX = 4 << 20
BLOCK_BYTES = 4096
"""The space that a file may need in addition to its content."""
_LINK_MODE = b"120000"
_SUBMODULE_MODE = b"160000"
_SETTINGS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "submodule.recurse=false")
_LOCAL_VARIABLES = frozenset(
    (
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_CONFIG",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_PARAMETERS",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_NAMESPACE",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_QUARANTINE_PATH",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    )
)
"""The variables that name a repository or a part of one: those of `git rev-parse --local-env-vars`, and two more."""


def without_repository_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the variables that would make git use another repository than that of its files."""
    return {name: value for name, value in environment.items() if name not in _LOCAL_VARIABLES}


def register_linked_tree(
    git: str, repository: bytes, tree: bytes, commit: str, may_continue: Callable[[], bool]
) -> None:
    """Add a locked work tree without files to a repository. The caller holds a lock. Raises GitError.

    A registration of the same path is replaced. If `may_continue` returns false, git is ended.
    """
    arguments = ("worktree", "add", "-f", "-f", "--detach", "--lock", "--no-checkout", "--quiet", tree, commit)
    _run(git, repository, arguments, may_continue)


def fill_linked_tree(git: str, tree: bytes, may_continue: Callable[[], bool]) -> None:
    """Write the files of the commit into a registered work tree, as `git worktree add` does. Raises GitError.

    If `may_continue` returns false, git is ended.
    """
    _run(git, tree, ("reset", "--hard", "--quiet", "--no-recurse-submodules"), may_continue)


def unregister_linked_tree(git: str, repository: bytes, tree: bytes) -> None:
    """Remove the registration of a work tree whose directory was removed. The caller holds a lock. Raises GitError.

    `git worktree prune` would also remove registrations of the user's own work trees, for example on a disk that is not
    mounted now.
    """
    _run(git, repository, ("worktree", "remove", "-f", "-f", tree), lambda: True)


class CommitTree(NamedTuple):
    """The files of a commit.

    - `size_bytes`: about how much disk space they need.
    - `paths`: the paths of all files, links and submodules. `links`: the object ids of the links, by path.
    - `submodules`: the commits of the submodules, by path.
    """

    size_bytes: int
    paths: list[bytes]
    links: dict[bytes, bytes]
    submodules: dict[bytes, str]


def read_commit_tree(git: str, repository: bytes, commit: str) -> CommitTree:
    """Return the files of a commit. Raises GitError."""
    arguments = ("ls-tree", "-r", "-l", "-z", "--full-tree", commit)
    tree = CommitTree(0, [], {}, {})
    size_bytes = 0
    for line in query_git(git, repository, arguments, _QUERY_SECONDS_MAX, is_top=True).split(b"\0")[:-1]:
        facts, _, path = line.partition(b"\t")
        mode, _, object_id, size = facts.split()
        size_bytes += BLOCK_BYTES + (int(size) if size.isdigit() else 0)
        tree.paths.append(path)
        if mode == _LINK_MODE:
            tree.links[path] = object_id
        elif mode == _SUBMODULE_MODE:
            tree.submodules[path] = object_id.decode("ascii", "replace")
    return tree._replace(size_bytes=size_bytes)


def read_link_targets(git: str, repository: bytes, links: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Return the targets of links by path. `links` has their object ids. Missing objects are left out.

    Raises GitError.
    """
    targets: dict[bytes, bytes] = {}
    with tempfile.TemporaryFile() as names:
        names.write(b"".join(object_id + b"\n" for object_id in links.values()))
        names.seek(0)
        process = start_git(git, repository, ("cat-file", "--batch"), is_top=True, input_descriptor=names.fileno())
        try:
            output = finish_git(process, _QUERY_SECONDS_MAX)[0]
        finally:
            end_git(process)
    at = 0
    for path in links:
        end = output.index(b"\n", at)
        *_, size = output[at:end].split()
        at = end + 1
        if size.isdigit():
            targets[path] = output[at : at + int(size)]
            at += int(size) + 1
    return targets


def read_user_excludes(git: str, tree: bytes) -> bytes:
    """Return the content of the ignore file of the user for all repositories, or nothing if there is none."""
    settings = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    path = os.fsencode(os.path.join(settings, "git", "ignore"))
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        found = subprocess.run(
            [git, "config", "--type=path", "--null", "--get", "core.excludesFile"],
            check=False,
            cwd=tree,
            env=without_repository_variables(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_QUERY_SECONDS_MAX,
        )
        if found.returncode == 0:
            path = os.path.join(tree, found.stdout.removesuffix(b"\0"))
        return read_regular(path, bytes_max=_EXCLUDES_BYTES_MAX, is_link_followed=True)
    return b""


def merge_contents(git: str, ours: bytes, base: bytes, theirs: bytes) -> bytes | None:
    """Return the merge of two versions of a file, or None if their changes conflict or git cannot merge them."""
    with tempfile.TemporaryDirectory(prefix="codebatch-merge-") as directory:
        for name, content in (("ours", ours), ("base", base), ("theirs", theirs)):
            with open(os.path.join(directory, name), "wb") as file:
                file.write(content)
        with contextlib.suppress(GitError):
            arguments = ("merge-file", "-p", "-q", "ours", "base", "theirs")
            return query_git(git, os.fsencode(directory), arguments, _MERGE_SECONDS_MAX, is_top=False)
    return None


def _run(git: str, directory: bytes, arguments: tuple[str | bytes, ...], may_continue: Callable[[], bool]) -> None:
    environment = without_repository_variables(os.environ) | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        process = subprocess.Popen(
            [git, *_SETTINGS, *arguments],
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise GitError(f"git cannot be started in {display_path(directory)}: {error.strerror}") from error
    with process:
        try:
            errors = _wait(process, may_continue)
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise GitError(first_error_line(errors) or f"git ended with status {process.returncode}")


def _wait(process: subprocess.Popen[bytes], may_continue: Callable[[], bool]) -> bytes:
    while True:
        try:
            return process.communicate(timeout=_POLL_SECONDS)[1]
        except subprocess.TimeoutExpired as error:
            if not may_continue():
                raise GitError("git was ended on request") from error
