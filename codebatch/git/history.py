"""The commits of the last year in a git repository: the file versions that they changed, and the differing lines.

git is run as repository.py describes, so no setting of the repository has an effect. Each function has limits of
commits, bytes and time. If it reaches a limit, its result covers only the newest commits.

`list_commits` returns commits. `read_commits` reads the file versions that each commit created, and their older
versions. `read_hunks` reads the differing lines. It is slow, so it reads only the files in `paths`. git may report any
path, and the same path twice in a commit. So callers must only look up paths that they know.
"""

from __future__ import annotations

import hashlib
import os
import selectors
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from codebatch.git.patches import BLOB_PREFIX_BYTES, BlobPair, Hunk, blob_from_name, parse_patch
from codebatch.git.repository import GitError, end_git, query_git, start_git
from codebatch.system.processes.process_timer import ProcessTimer

YEAR_SECONDS = 365 * 24 * 60 * 60
COMMITS_MAX = 100_000
HISTORY_SECONDS_MAX = 10.0
HISTORY_BYTES_MAX = 256 << 20

_COMMITS_PER_READ = 1_024
"""Number of commits that are read at a time, because git outputs merges separately from other commits."""
_HEAD_SECONDS = 5.0
_SHA1_DIGITS = 40
_READ_BYTES = 1 << 16
_HEAD_QUERY = ("rev-parse", "--is-shallow-repository", "HEAD^{commit}", "HEAD:./")
# git treats files above this size as binary and does not compare their lines, which would take long.
_BIG_FILE_OPTIONS = ("-c", "core.bigFileThreshold=1m")
# These options protect against hostile repositories: no external diff, no text conversion, no order file.
_DIFF_TREE_ARGUMENTS = (
    "diff-tree", "--stdin", "-r", "--full-index", "--no-ext-diff", "--no-textconv", "--no-color",
    "--ignore-submodules=none", "-O/dev/null",
)  # fmt: skip
_RAW_DIFF_ARGUMENTS = (*_BIG_FILE_OPTIONS, *_DIFF_TREE_ARGUMENTS, "-c", "--raw", "-z")
_FIND_RENAMES = ("-M50%",)
_RENAME_LIMIT = "-l1000"
_MERGE_RENAME_LIMIT = "-l20"
"""The limit of files up to which git detects renames in merges.

It is low, because rename detection in a merge of very different trees takes long, while few files are renamed in only
one parent.
"""
_PATCH_OPTIONS = (
    "-p", "-U0", "--inter-hunk-context=0", "--diff-algorithm=myers", "--indent-heuristic",
    "--irreversible-delete",
)  # fmt: skip


class HeadCommit(msgspec.Struct, frozen=True):
    """The newest commit of a work tree. `is_shallow` is set if the history before some commit is missing."""

    commit: str
    is_shallow: bool


class FileVersion(NamedTuple):
    """A version of a file in a commit: its path, and the beginning of its blob hash."""

    path: bytes
    blob: bytes


class FileVersionChange(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A version of a file that a commit created, and the older versions: one in each parent of the commit.

    If the file is new, `old` is empty. A merge has a change only for a file that differs from the file in every parent.
    """

    new: FileVersion
    old: tuple[FileVersion, ...]


class ListedCommit(NamedTuple):
    """A commit and its parents, given by their hashes."""

    name: bytes
    parents: tuple[bytes, ...]

    @property
    def is_merge(self) -> bool:
        """True if the commit has several parents."""
        return len(self.parents) > 1


class CommitComparison(NamedTuple):
    """A commit that is to be compared with one parent or, if `parent` is None, with each of its parents."""

    commit: bytes
    parent: bytes | None


class ReadingProgress(Protocol):
    """A callback that is called with the progress of a reading: the number of commits done, and of all commits."""

    def __call__(self, done: int, planned: int) -> None: ...


def ignore_advance(done: int, planned: int) -> None:
    """Do nothing."""


class CommitReading(NamedTuple):
    """The changes of each commit, by commit hash. If `is_cut` is set, some of the requested commits are missing."""

    changes: dict[bytes, tuple[FileVersionChange, ...]]
    is_cut: bool


class HunkReading(NamedTuple):
    """The hunks of each pair of versions. If `is_cut` is set, some of the requested pairs are missing.

    If a pair has no hunks, its versions cannot be compared by lines. `seconds` is the time of the reading.
    """

    hunks: dict[BlobPair, tuple[Hunk, ...]]
    is_cut: bool
    seconds: float


def find_head(git: str, directory: bytes) -> HeadCommit:
    """Return the newest commit. Raises GitError if there is none, or if it has no files below the directory."""
    try:
        words = query_git(git, directory, _HEAD_QUERY, _HEAD_SECONDS, is_top=is_repository_top(directory)).split()
    except GitError as error:
        if str(error).startswith("ambiguous argument"):  # git's message for an unknown revision.
            raise GitError("the git repository has no readable commit") from error
        raise
    if len(words) != 3:
        raise GitError("git does not report the newest commit")
    return HeadCommit(words[1].decode("ascii", "replace"), words[0] == b"true")


def list_commits(
    git: str,
    directory: bytes,
    head: HeadCommit,
    *,
    seconds_max: float = HISTORY_SECONDS_MAX,
    commits_max: int = COMMITS_MAX,
) -> list[ListedCommit]:
    """Return the commits of the last year up to `head`, each before its parents. Raises GitError.

    Up to `commits_max` + 1 commits are returned. The additional one shows the caller that there are more.
    """
    is_top = is_repository_top(directory)
    newest = query_git(
        git, directory, ("log", "-1", "--no-show-signature", "--format=%ct", head.commit, "--"), _HEAD_SECONDS,
        is_top=is_top,
    )  # fmt: skip
    since = max(int(newest) - YEAR_SECONDS, 0) if newest.strip().isdigit() else 0
    bounds = (f"--max-age={since}", f"--max-count={commits_max + 1}")
    listed = query_git(
        git, directory, ("rev-list", "--topo-order", "--parents", *bounds, head.commit, "--"), seconds_max,
        is_top=is_top,
    )  # fmt: skip
    lines = (map(bytes.fromhex, line.split()) for line in listed.decode("ascii").splitlines())
    return [ListedCommit(name, tuple(parents)) for name, *parents in lines]


def read_commits(
    git: str,
    directory: bytes,
    head: HeadCommit,
    commits: Sequence[ListedCommit],
    *,
    seconds_max: float = HISTORY_SECONDS_MAX,
    bytes_max: int = HISTORY_BYTES_MAX,
    advance: ReadingProgress = ignore_advance,
) -> CommitReading:
    """Read the changes that commits made to files below a directory, in the order of `commits`. Raises GitError.

    In a shallow repository, the oldest commit appears to create every file, so no changes are returned for it. If a
    limit is reached before the first commit is complete, the first commit is returned without changes.
    """
    prefix = query_git(
        git, directory, ("rev-parse", "--show-prefix"), _HEAD_SECONDS, is_top=is_repository_top(directory)
    )[:-1]
    root = () if head.is_shallow else ("--root",)
    reader = _ChangeReader(git, directory, prefix, root, seconds_max, bytes_max)
    changes: dict[bytes, tuple[FileVersionChange, ...]] = {}
    for start in range(0, len(commits), _COMMITS_PER_READ):
        advance(start, len(commits))
        changes |= reader.read(commits[start : start + _COMMITS_PER_READ])
        if reader.is_cut:
            # Otherwise every later reading would stop here too.
            changes.setdefault(commits[0].name, ())
            break
    return CommitReading(changes, reader.is_cut)


class _ChangeReader(msgspec.Struct):
    """A reader of the changes of commits within limits of time and bytes."""

    git: str
    directory: bytes
    prefix: bytes
    root: tuple[str, ...]
    seconds_max: float
    bytes_max: int
    is_cut: bool = False

    def read(self, commits: Sequence[ListedCommit]) -> dict[bytes, tuple[FileVersionChange, ...]]:
        """Return the changes of each commit that could be read within the limits."""
        ordinary = [listed_commit.name for listed_commit in commits if not listed_commit.is_merge]
        merges = {listed_commit.name: len(listed_commit.parents) for listed_commit in commits if listed_commit.is_merge}
        merge_changes = self._read_with_renames(list(merges), "")
        # Merges are first read without rename detection, which takes six times as long. It is needed only if a parent
        # does not have a file.
        with_renames = [
            name
            for name, changes in merge_changes.items()
            if any(len(listed_commit.old) < merges[name] for listed_commit in changes)
        ]  # fmt: skip
        merge_changes = {name: changes for name, changes in merge_changes.items() if name not in with_renames}
        return (
            merge_changes
            | self._read_with_renames(with_renames, _MERGE_RENAME_LIMIT)
            | self._read_with_renames(ordinary, _RENAME_LIMIT)
        )

    def _read_with_renames(self, names: list[bytes], renames: str) -> dict[bytes, tuple[FileVersionChange, ...]]:
        if not names or self.is_cut:
            return {}
        rename_options = (*_FIND_RENAMES, renames, "--combined-all-paths") if renames else ("--no-renames",)
        output = _DiffOutput(
            self.git,
            self.directory,
            (*_RAW_DIFF_ARGUMENTS, *rename_options, *self.root, "--", "."),
            map(bytes.hex, names),
        )
        changes, last = _parse_raw(
            output.iter_tokens(self.seconds_max, self.bytes_max), self.prefix, has_renames=bool(renames)
        )  # fmt: skip
        if output.status and renames:  # Rename detection reads files, which a partial clone may lack.
            return self._read_with_renames(names, "")
        if output.status:
            raise GitError(f"git ended with status {output.status}")
        self.bytes_max -= output.read_bytes
        self.seconds_max -= output.seconds
        if output.is_cut:
            self.is_cut = True
            names = names[: names.index(last)] if last in changes else []  # The last commit may be incomplete.
        return {name: tuple(changes.get(name, ())) for name in names}


def read_hunks(
    git: str,
    directory: bytes,
    commits_by_pair: Mapping[BlobPair, CommitComparison],
    paths: Collection[bytes],
    *,
    seconds_max: float = HISTORY_SECONDS_MAX,
    bytes_max: int = HISTORY_BYTES_MAX,
) -> HunkReading:
    """Read the hunks of pairs of file versions. Only the files in `paths` are read. Raises GitError.

    `commits_by_pair` maps each pair to the commit that created the new version, and the parent to compare with.
    """
    compared = dict.fromkeys(commits_by_pair.values())
    arguments = (
        *_BIG_FILE_OPTIONS,
        *_DIFF_TREE_ARGUMENTS,
        *_FIND_RENAMES,
        _RENAME_LIMIT,
        "--root",
        "-m",
        *_PATCH_OPTIONS,
        "--",
    )
    lines = (" ".join(name.hex() for name in each if name is not None) for each in compared)
    output = _DiffOutput(git, directory, (*arguments, *sorted(paths)), lines)
    hunks = parse_patch(output.iter_line_blocks(seconds_max, bytes_max))
    pairs: Iterable[BlobPair] = commits_by_pair
    if output.status:  # git failed because a version is missing. The last pair may be incomplete.
        hunks.pop(next(reversed(hunks), (b"", b"")), None)
    if output.is_cut:
        # The last pair may be incomplete, so it is dropped. If it is the only pair, it counts as read: otherwise every
        # later reading would stop at this pair.
        last = next(reversed(hunks), None)
        pairs = [each for each in commits_by_pair if each in hunks and each != last] or list(commits_by_pair)[:1]
    return HunkReading({pair: tuple(hunks.get(pair, ())) for pair in pairs}, output.is_cut, output.seconds)


def read_committed_files(git: str, directory: bytes, head: HeadCommit, paths: Collection[bytes]) -> dict[bytes, bytes]:
    """Return the contents of files in the commit `head`.

    `paths` are relative to the directory. Missing paths are omitted. Raises GitError.
    """
    is_top = is_repository_top(directory)
    tree: tuple[str | bytes, ...] = ("ls-tree", "-z", head.commit, "--", *sorted(paths))
    contents: dict[bytes, bytes] = {}
    for entry in query_git(git, directory, tree, _HEAD_SECONDS, is_top=is_top).split(b"\0")[:-1]:
        metadata, _, path = entry.partition(b"\t")
        _, kind, blob = metadata.split(b" ")
        if kind == b"blob" and path in paths:
            contents[path] = query_git(git, directory, ("cat-file", "blob", blob), _HEAD_SECONDS, is_top=is_top)
    return contents


def blob_hash_prefix(content: bytes, commit: str) -> bytes:
    """Return the beginning of the blob hash of a content. `commit` shows the hash algorithm of the repository."""
    new = hashlib.sha1 if len(commit) == _SHA1_DIGITS else hashlib.sha256
    return new(b"blob %d\0%b" % (len(content), content), usedforsecurity=False).digest()[:BLOB_PREFIX_BYTES]


class _DiffOutput:
    """The output of one `git diff-tree` process for several commits. It can be read only once, to its end.

    `is_cut` is set if a limit of bytes or time was reached. `status` is the exit status of git, and `seconds` the time
    that it took (ProcessTimer).
    """

    def __init__(self, git: str, directory: bytes, arguments: tuple[str | bytes, ...], lines: Iterable[str]) -> None:
        """Start git. Each line has a commit, and optionally the parents with which git compares it."""
        self.is_cut = False
        self.read_bytes = 0
        self.status = 0
        self.seconds = 0.0
        is_top = is_repository_top(directory)
        with os.fdopen(os.memfd_create("commits"), "w+b") as commits_file:
            commits_file.writelines(line.encode("ascii") + b"\n" for line in lines)
            commits_file.seek(0)
            self._process = start_git(git, directory, arguments, is_top=is_top, input_descriptor=commits_file.fileno())

    def iter_tokens(self, seconds_max: float, bytes_max: int) -> Iterator[bytes]:
        """Yield the tokens of the output, which end with NUL."""
        for block in self._iter_blocks(b"\0", seconds_max, bytes_max):
            yield from block.split(b"\0")[:-1]

    def iter_line_blocks(self, seconds_max: float, bytes_max: int) -> Iterator[bytes]:
        """Yield blocks of whole lines."""
        return self._iter_blocks(b"\n", seconds_max, bytes_max)

    def _iter_blocks(self, end: bytes, seconds_max: float, bytes_max: int) -> Iterator[bytes]:
        remaining: list[bytes] = []
        timer = ProcessTimer(self._process.pid)
        try:
            for data in _iter_output(self._process, timer, seconds_max):
                self.read_bytes += len(data or b"")
                if data is None or self.read_bytes > bytes_max:
                    self.is_cut = True
                    return
                head, separator, tail = data.rpartition(end)
                if separator:
                    yield b"".join((*remaining, head, separator))
                    remaining = []
                remaining.append(tail)
            self.status = self._process.wait()
        finally:
            self.seconds = timer.seconds()
            end_git(self._process)


def _parse_raw(
    tokens: Iterator[bytes], prefix: bytes, *, has_renames: bool
) -> tuple[dict[bytes, list[FileVersionChange]], bytes]:
    """Parse the output of git. Return the changes of each commit, and the hash of the last commit in it."""
    changes: dict[bytes, list[FileVersionChange]] = {}
    commit = b""
    try:
        for token in tokens:
            if not token.startswith(b":"):
                commit = bytes.fromhex(token.decode("ascii"))
                changes[commit] = []
                continue
            parents = len(token) - len(token.lstrip(b":"))
            fields = token[parents:].split()
            blobs, status = fields[parents + 1 : -1], fields[-1]
            path_count = parents + 1 if parents > 1 and has_renames else 1 + (status[:1] in b"RC" and parents == 1)
            paths = [next(tokens).removeprefix(prefix) for _ in range(path_count)]
            *old, new = map(blob_from_name, blobs)
            if not any(new):
                continue
            olds = paths if len(paths) > 1 else paths * parents
            versions = (FileVersion(path, blob) for path, blob in zip(olds, old, strict=False) if any(blob))
            changes[commit].append(FileVersionChange(FileVersion(paths[-1], new), tuple(versions)))
    except (ValueError, IndexError, KeyError) as error:
        raise GitError("git does not report which commits changed") from error
    except StopIteration:
        pass  # The output was cut within a change.
    return changes, commit


def _iter_output(process: subprocess.Popen[bytes], timer: ProcessTimer, seconds_max: float) -> Iterator[bytes | None]:
    """Yield blocks of the output of git. If the time is up, yield None and stop.

    Standard error is read too, because git would block if that pipe were full.
    """
    assert process.stdout is not None
    assert process.stderr is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        selector.register(process.stderr, selectors.EVENT_READ)
        while selector.get_map():
            remaining = seconds_max - timer.seconds()
            if remaining <= 0:
                yield None
                return
            for key, _ in selector.select(remaining):
                data = os.read(key.fd, _READ_BYTES)
                if not data:
                    selector.unregister(key.fileobj)
                elif key.fileobj is process.stdout:
                    yield data


def is_repository_top(directory: bytes) -> bool:
    """Return whether a directory is the top of a repository: it contains a `.git`."""
    return os.path.lexists(os.path.join(directory, b".git"))
