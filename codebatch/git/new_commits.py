"""New commits on a new branch, made without a work tree and without an index. git is run as repository.py describes.

All commits are made by one `git fast-import`. It takes the contents as they are, without filters, runs no hook and
signs nothing. `git hash-object` and `git update-index` would need one process or one temporary file for each content.
fast-import makes commits on a reference. It is a temporary one, which is deleted in the same session, so that it is
never written. So after a failure the repository has some unreachable objects, which `git gc` removes, and no more.

At last, `git update-ref` creates the branch, and fails if the branch exists by now.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from typing import IO, NamedTuple

from codebatch.git.ancestry import Repository, is_commit
from codebatch.git.history import is_repository_top
from codebatch.git.repository import GitError, end_git, finish_git, start_git

SUBMODULE_MODE = "160000"
FILE_MODE = "100644"
EXECUTABLE_MODE = "100755"
LINK_MODE = "120000"

_QUERY_SECONDS = 60.0
_IMPORT_SECONDS = 600.0
_SHA1_DIGITS = 40
# Objects that replace others would make the checked tree differ from the one that the new commit has.
_SETTINGS = ("-c", "core.useReplaceRefs=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false")
_IDENTITY = re.compile(rb"([^<>\n\0]+) <([^<>\n\0]*)> [0-9]+ [+-][0-9]{4}\Z")
_TREE_LINE = re.compile(rb"([0-7]{6}) [a-z]+ ([0-9a-f]+)\t(.*)", re.DOTALL)
_INDEX_LINE = re.compile(rb"(\S) ([0-7]{6}) ([0-9a-f]+) [0-3]\t(.*)", re.DOTALL)
_QUOTED_BYTE = re.compile(rb'[\x00-\x1f"\\\x7f-\xff]')


class TreeBlob(NamedTuple):
    """A file, a symbolic link or a submodule in the tree of a commit: its mode in octal digits, and its object id."""

    mode: str
    object_id: str


class Identities(NamedTuple):
    """The author and the committer of new commits, as git writes them, with the time."""

    author: bytes
    committer: bytes


class CommitFile(NamedTuple):
    """A file of a new commit that differs from its parent. If `content` is None, the file is deleted."""

    path: bytes
    mode: str
    content: bytes | None


class NewCommit(NamedTuple):
    """A commit to be made. `files` is read once; deletions come first."""

    message: bytes
    files: Iterable[CommitFile]


def blob_id(content: bytes, digits: int = _SHA1_DIGITS) -> str:
    """Return the object id that git gives to a content, in a repository whose ids have this number of digits."""
    hasher = hashlib.sha1(usedforsecurity=False) if digits == _SHA1_DIGITS else hashlib.sha256()
    hasher.update(b"blob %d\0" % len(content))
    hasher.update(content)
    return hasher.hexdigest()


def find_prefix(repository: Repository) -> bytes:
    """Return the path of the directory below the top of its work tree, empty or with a slash at the end.

    Raises GitError if the directory is not in a work tree.
    """
    words = _query_git(repository, "rev-parse", "--is-inside-work-tree", "--show-prefix").split(b"\n")
    if words[0] != b"true":
        raise GitError("it is not in a git work tree")
    return words[1]


def read_tree(repository: Repository, commit: str) -> dict[bytes, TreeBlob]:
    """Map each path in the tree of a commit to its entry. Raises GitError if the commit is missing."""
    if not is_commit(commit):
        raise GitError(f"{commit[:80]!r} is not a commit")
    tree: dict[bytes, TreeBlob] = {}
    for line in _query_git(repository, "ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
        match = _TREE_LINE.fullmatch(line)
        if match is not None:
            tree[match[3]] = TreeBlob(match[1].decode("ascii"), match[2].decode("ascii"))
    return tree


def read_hidden_entries(repository: Repository) -> dict[bytes, TreeBlob]:
    """Map the paths of submodules, and of files that the work tree need not have, to their entries in the index.

    The paths are relative to the directory, and below it. git marks files outside of a sparse checkout. Raises
    GitError.
    """
    entries: dict[bytes, TreeBlob] = {}
    for line in _query_git(repository, "ls-files", "-t", "-s", "-z").split(b"\0"):
        match = _INDEX_LINE.fullmatch(line)
        if match is not None and (match[1] == b"S" or match[2] == SUBMODULE_MODE.encode("ascii")):
            entries[match[4]] = TreeBlob(match[2].decode("ascii"), match[3].decode("ascii"))
    return entries


def read_blob(repository: Repository, object_id: str) -> bytes:
    """Return the content of an object. Raises GitError."""
    return _query_git(repository, "cat-file", "blob", object_id)


def is_branch_name(repository: Repository, name: str) -> bool:
    """Return whether git accepts a text as the name of a new branch. `@{-1}` and the like name an existing branch."""
    try:
        output = _query_git(repository, "check-ref-format", "--branch", name)
    except GitError:
        return False
    return output == os.fsencode(name) + b"\n"


def find_checked_out_branches(repository: Repository) -> set[str]:
    """Return the branches of all work trees, also those without a commit yet. Raises GitError."""
    prefix = b"branch refs/heads/"
    lines = _query_git(repository, "worktree", "list", "--porcelain").split(b"\n")
    return {os.fsdecode(line[len(prefix) :]) for line in lines if line.startswith(prefix)}


def current_branch(repository: Repository) -> str | None:
    """Return the branch that is checked out, or None if HEAD is detached."""
    with contextlib.suppress(GitError):
        return os.fsdecode(_query_git(repository, "symbolic-ref", "--short", "-q", "HEAD").strip())
    return None


def read_identities(repository: Repository) -> Identities:
    """Return the author and committer that the user's settings of git name. Raises GitError if they name none."""
    found = []
    for variable in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
        process = start_git(
            repository.git_program,
            repository.directory,
            ("-c", "user.useConfigOnly=true", "var", variable),
            is_top=is_repository_top(repository.directory),
            has_user_settings=True,
        )
        try:
            identity = finish_git(process, _QUERY_SECONDS)[0].removesuffix(b"\n")
        finally:
            end_git(process)
        if not _IDENTITY.match(identity):
            raise GitError("git names no author")
        found.append(identity)
    return Identities(*found)


def write_commits(
    repository: Repository, parent: str, commits: Iterable[NewCommit], identities: Identities
) -> list[str]:
    """Make commits, each of which has the one before as its parent, and the first `parent`. Return their ids.

    They belong to no branch. Raises GitError if git fails, or if there is no space for a copy of all contents.
    """
    reference = b"refs/codebatch/%b" % uuid.uuid4().hex.encode()
    try:
        with tempfile.TemporaryFile() as stream:
            count = _write_stream(stream, reference, parent, commits, identities)
            stream.seek(0)
            output = _import_stream(repository, stream.fileno())
    except OSError as error:
        raise GitError(f"cannot write a temporary file: {error.strerror}") from error
    ids = output.decode("ascii", "replace").split()
    if len(ids) != count or not all(map(is_commit, ids)):
        raise GitError("git does not name the new commits")
    return ids


def create_branch(repository: Repository, name: str, commit: str, identities: Identities) -> None:
    """Create a branch that did not exist. Raises GitError if it exists or cannot be written."""
    match = _IDENTITY.match(identities.committer)
    assert match is not None, "identities are checked when they are read"
    # The log of the reference has the committer.
    settings = (b"-c", b"user.name=" + match[1], b"-c", b"user.email=" + match[2])
    null_id = "0" * len(commit)
    _query_git(
        repository, *settings, "update-ref", "-m", "codebatch apply", "--", f"refs/heads/{name}", commit, null_id
    )


def _write_stream(
    stream: IO[bytes], reference: bytes, parent: str, commits: Iterable[NewCommit], identities: Identities
) -> int:
    """Write the commands for git fast-import. Return the number of commits."""
    stream.write(b"feature done\n")
    count = 0
    for count, commit in enumerate(commits, 1):
        stream.write(b"commit %b\nmark :%d\n" % (reference, count))
        stream.write(b"author %b\ncommitter %b\n" % identities)
        stream.write(b"data %d\n%b\n" % (len(commit.message), commit.message))
        if count == 1:
            stream.write(b"from %b\n" % parent.encode("ascii"))
        for part in _iter_file_commands(commit.files):
            stream.write(part)
        stream.write(b"\nget-mark :%d\n" % count)
    if count:
        stream.write(b"reset %b\nfrom %b\n\n" % (reference, b"0" * len(parent)))
    stream.write(b"done\n")
    return count


def _iter_file_commands(files: Iterable[CommitFile]) -> Iterator[bytes]:
    for path, mode, content in files:
        if content is None:
            yield b"D %b\n" % _quoted_path(path)
        else:
            yield b"M %b inline %b\ndata %d\n" % (mode.encode("ascii"), _quoted_path(path), len(content))
            yield content
            yield b"\n"


def _quoted_path(path: bytes) -> bytes:
    """Return a path in quotation marks, as git fast-import reads it."""
    return b'"%b"' % _QUOTED_BYTE.sub(lambda match: b"\\%03o" % match[0][0], path)


def _import_stream(repository: Repository, descriptor: int) -> bytes:
    """Run git fast-import. Return its output. Raises GitError."""
    is_top = is_repository_top(repository.directory)
    process = start_git(
        repository.git_program,
        repository.directory,
        (*_SETTINGS, "fast-import", "--quiet"),
        is_top=is_top,
        input_descriptor=descriptor,
    )
    try:
        return finish_git(process, _IMPORT_SECONDS)[0]
    except GitError:
        # If git fast-import fails, it leaves a report in the repository.
        with contextlib.suppress(GitError, OSError):
            directory = _query_git(repository, "rev-parse", "--absolute-git-dir").removesuffix(b"\n")
            os.unlink(os.path.join(directory, b"fast_import_crash_%d" % process.pid))
        raise
    finally:
        end_git(process)


def _query_git(repository: Repository, *arguments: str | bytes) -> bytes:
    return repository.query(*_SETTINGS, *arguments)
