"""The commits of the last year of a work tree: changed versions of files, and differing lines.

git is queried as in repository.py: no setting of the repository has an effect. Every reading is bounded in commits,
bytes and time. If a limit is reached, the result covers the newest commits. git may report any path, and the same path
twice in a commit, so callers only look paths up. `list_commits` returns commits. `read_commits` reads the file versions
that each commit created from others. `read_hunks` reads differing lines of chosen files only, because it is slow.
"""

from __future__ import annotations

import hashlib
import os
import selectors
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from codebatch.git.patches import BLOB_BYTES, Hunk, Pair, blob_from_name, parse_patch
from codebatch.git.repository import GitError, ask_git, end_git, start_git
from codebatch.system.clock import running_ns

YEAR_SECONDS = 365 * 24 * 60 * 60
COMMITS_MAX = 100_000
HISTORY_SECONDS_MAX = 10.0
HISTORY_BYTES_MAX = 256 << 20

_COMMITS_PER_READ = 1_024
"""Commits read at a time. git outputs merges separately, and a cut must leave the newest commits complete."""
_HEAD_SECONDS = 5.0
_SHA1_DIGITS = 40
_READ_BYTES = 1 << 16
_HEAD_QUERY = ("rev-parse", "--is-shallow-repository", "HEAD^{commit}", "HEAD:./")
# git treats larger files as binary: they have no lines and take no time.
_BIG_FILE = ("-c", "core.bigFileThreshold=1m")
# Protection against hostile repositories: no external diff, no text conversion, no order file.
_DIFF = (
    "diff-tree", "--stdin", "-r", "--full-index", "--no-ext-diff", "--no-textconv", "--no-color",
    "--ignore-submodules=none", "-O/dev/null",
)  # fmt: skip
_RAW = (*_BIG_FILE, *_DIFF, "-c", "--raw", "-z")
_FIND_RENAMES = ("-M50%",)
_RENAMES = "-l1000"
_RENAMES_OF_MERGES = "-l20"
"""Limit of rename detection in merges.

It is low because a merge of very different trees would take long, and few files are renamed in one parent only.
"""
_LINES = (
    "-p", "-U0", "--inter-hunk-context=0", "--diff-algorithm=myers", "--indent-heuristic",
    "--irreversible-delete",
)  # fmt: skip


class Head(msgspec.Struct, frozen=True):
    """The newest commit of a work tree. `is_shallow`: history before some commit is missing."""

    commit: str
    is_shallow: bool


class Version(NamedTuple):
    """A version of a file in a commit: its path, and the beginning of its blob hash."""

    path: bytes
    blob: bytes


class FileVersionChange(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A version of a file that a commit created, and the versions that it was created from, one of each parent.

    `old` is empty if the file is new. A merge has a change only if the file differs from that of every parent.
    """

    new: Version
    old: tuple[Version, ...]


class ListedCommit(NamedTuple):
    """A commit and its parents, by hash."""

    name: bytes
    parents: tuple[bytes, ...]

    @property
    def is_merge(self) -> bool:
        """True if the commit has several parents."""
        return len(self.parents) > 1


class CommitComparison(NamedTuple):
    """A commit that is compared with one parent, or with each parent if `parent` is None."""

    commit: bytes
    parent: bytes | None


class Advance(Protocol):
    """A callback for the progress of a reading."""

    def __call__(self, done: int, planned: int) -> None: ...


def ignore_advance(done: int, planned: int) -> None:
    """Do nothing."""


class CommitReading(NamedTuple):
    """Changes by commit hash, for all requested commits unless `is_cut`."""

    changes: dict[bytes, tuple[FileVersionChange, ...]]
    is_cut: bool


class HunkReading(NamedTuple):
    """Hunks by pair, for all requested pairs unless `is_cut`. A pair without hunks cannot be compared by lines."""

    hunks: dict[Pair, tuple[Hunk, ...]]
    is_cut: bool


def find_head(git: str, directory: bytes) -> Head:
    """Return the newest commit, which must have files below the directory. Raises GitError if there is none."""
    try:
        words = ask_git(git, directory, _HEAD_QUERY, _HEAD_SECONDS, is_top=begins_in(directory)).split()
    except GitError as error:
        if str(error).startswith("ambiguous argument"):  # git's message for an unknown revision.
            raise GitError("the git repository has no readable commit") from error
        raise
    if len(words) != 3:
        raise GitError("git does not report the newest commit")
    return Head(words[1].decode("ascii", "replace"), words[0] == b"true")


def list_commits(
    git: str, directory: bytes, head: Head, *, seconds_max: float = HISTORY_SECONDS_MAX, commits_max: int = COMMITS_MAX
) -> list[ListedCommit]:
    """Return the commits of the year before a commit, a child before its parents, at most one more than `commits_max`.

    Raises GitError.
    """
    is_top = begins_in(directory)
    newest = ask_git(
        git, directory, ("log", "-1", "--no-show-signature", "--format=%ct", head.commit, "--"), _HEAD_SECONDS,
        is_top=is_top,
    )  # fmt: skip
    since = max(int(newest) - YEAR_SECONDS, 0) if newest.strip().isdigit() else 0
    bounds = (f"--max-age={since}", f"--max-count={commits_max + 1}")
    listed = ask_git(
        git, directory, ("rev-list", "--topo-order", "--parents", *bounds, head.commit, "--"), seconds_max,
        is_top=is_top,
    )  # fmt: skip
    lines = map(bytes.split, listed.splitlines())
    return [ListedCommit(name, tuple(parents)) for name, *parents in (map(_from_hex, line) for line in lines)]


def read_commits(
    git: str,
    directory: bytes,
    head: Head,
    commits: Sequence[ListedCommit],
    *,
    seconds_max: float = HISTORY_SECONDS_MAX,
    bytes_max: int = HISTORY_BYTES_MAX,
    advance: Advance = ignore_advance,
) -> CommitReading:
    """Read the changes of commits below a directory, in order. Raises GitError.

    The oldest commit of a shallow repository appears to create every file, so it has no changes. If the limits do not
    suffice for the first commit, it has no changes.
    """
    prefix = ask_git(git, directory, ("rev-parse", "--show-prefix"), _HEAD_SECONDS, is_top=begins_in(directory))[:-1]
    root = () if head.is_shallow else ("--root",)
    reader = _ChangeReader(git, directory, prefix, root, running_ns() + round(seconds_max * 1e9), bytes_max)
    changes: dict[bytes, tuple[FileVersionChange, ...]] = {}
    for start in range(0, len(commits), _COMMITS_PER_READ):
        advance(start, len(commits))
        changes |= reader.read(commits[start : start + _COMMITS_PER_READ])
        if reader.is_cut:
            changes.setdefault(commits[0].name, ())  # Otherwise every later reading would stop at the same commit.
            break
    return CommitReading(changes, reader.is_cut)


class _ChangeReader(msgspec.Struct):
    """A reader of the changes of commits within limits of time and bytes."""

    git: str
    directory: bytes
    prefix: bytes
    root: tuple[str, ...]
    end_ns: int
    bytes_max: int
    is_cut: bool = False

    def read(self, commits: Sequence[ListedCommit]) -> dict[bytes, tuple[FileVersionChange, ...]]:
        """Return the changes of each commit that could be read."""
        ordinary = [each.name for each in commits if not each.is_merge]
        merges = {each.name: len(each.parents) for each in commits if each.is_merge}
        merge_changes = self._read(list(merges), "")
        # Rename detection in all merges takes six times as long. It matters only if a parent lacks a file.
        with_renames = [
            name for name, changes in merge_changes.items() if any(len(each.old) < merges[name] for each in changes)
        ]  # fmt: skip
        merge_changes = {name: changes for name, changes in merge_changes.items() if name not in with_renames}
        return merge_changes | self._read(with_renames, _RENAMES_OF_MERGES) | self._read(ordinary, _RENAMES)

    def _read(self, names: list[bytes], renames: str) -> dict[bytes, tuple[FileVersionChange, ...]]:
        if not names or self.is_cut:
            return {}
        rename_options = (*_FIND_RENAMES, renames, "--combined-all-paths") if renames else ("--no-renames",)
        output = _Output(
            self.git, self.directory, (*_RAW, *rename_options, *self.root, "--", "."), map(bytes.hex, names)
        )
        changes, last = _parse_raw(
            output.tokens(self.end_ns, self.bytes_max), self.prefix, has_renames=bool(renames)
        )  # fmt: skip
        if output.status and renames:  # Rename detection reads files, which a partial clone may lack.
            return self._read(names, "")
        if output.status:
            raise GitError(f"git ended with status {output.status}")
        self.bytes_max -= output.read_bytes
        if output.is_cut:
            self.is_cut = True
            names = names[: names.index(last)] if last in changes else []  # The last commit may be incomplete.
        return {name: tuple(changes.get(name, ())) for name in names}


def read_hunks(
    git: str,
    directory: bytes,
    wanted: Mapping[Pair, CommitComparison],
    paths: Collection[bytes],
    *,
    seconds_max: float = HISTORY_SECONDS_MAX,
    bytes_max: int = HISTORY_BYTES_MAX,
) -> HunkReading:
    """Read the hunks of pairs of versions at some paths, each with the commit that created the new version.

    Raises GitError.
    """
    end_ns = running_ns() + round(seconds_max * 1e9)
    compared = dict.fromkeys(wanted.values())
    arguments = (*_BIG_FILE, *_DIFF, *_FIND_RENAMES, _RENAMES, "--root", "-m", *_LINES, "--")
    lines = (" ".join(name.hex() for name in each if name is not None) for each in compared)
    output = _Output(git, directory, (*arguments, *sorted(paths)), lines)
    hunks = parse_patch(output.lines(end_ns, bytes_max))
    pairs: Iterable[Pair] = wanted
    if output.status:  # A version is missing. The last pair may be incomplete.
        hunks.pop(next(reversed(hunks), (b"", b"")), None)
    if output.is_cut:
        # The last pair may be incomplete. If it is the only one, it counts as read: otherwise every later reading would
        # stop at the same pair.
        last = next(reversed(hunks), None)
        pairs = [each for each in wanted if each in hunks and each != last] or list(wanted)[:1]
    return HunkReading({pair: tuple(hunks.get(pair, ())) for pair in pairs}, output.is_cut)


def read_committed(git: str, directory: bytes, head: Head, paths: Collection[bytes]) -> dict[bytes, bytes]:
    """Return the contents of files below a directory in a commit. Paths that it lacks are left out. Raises GitError."""
    is_top = begins_in(directory)
    tree: tuple[str | bytes, ...] = ("ls-tree", "-z", head.commit, "--", *sorted(paths))
    contents: dict[bytes, bytes] = {}
    for entry in ask_git(git, directory, tree, _HEAD_SECONDS, is_top=is_top).split(b"\0")[:-1]:
        metadata, _, path = entry.partition(b"\t")
        _, kind, blob = metadata.split(b" ")
        if kind == b"blob" and path in paths:
            contents[path] = ask_git(git, directory, ("cat-file", "blob", blob), _HEAD_SECONDS, is_top=is_top)
    return contents


def blob_of(content: bytes, commit: str) -> bytes:
    """Return the beginning of the blob hash of a content, in the object format of the repository of a commit."""
    new = hashlib.sha1 if len(commit) == _SHA1_DIGITS else hashlib.sha256
    return new(b"blob %d\0%b" % (len(content), content), usedforsecurity=False).digest()[:BLOB_BYTES]


class _Output:
    """The output of `git diff-tree` for commits. It must be read once, to its end.

    `is_cut`: a limit of bytes or time was reached. `status` is git's exit status.
    """

    def __init__(self, git: str, directory: bytes, arguments: tuple[str | bytes, ...], lines: Iterable[str]) -> None:
        """Start git. Each line names a commit and optionally the parents to compare it with."""
        self.is_cut = False
        self.read_bytes = 0
        self.status = 0
        is_top = begins_in(directory)
        with os.fdopen(os.memfd_create("commits"), "w+b") as commits_file:
            commits_file.writelines(line.encode("ascii") + b"\n" for line in lines)
            commits_file.seek(0)
            self._process = start_git(git, directory, arguments, is_top=is_top, given=commits_file.fileno())

    def tokens(self, end_ns: int, bytes_max: int) -> Iterator[bytes]:
        """Yield the parts that end with NUL."""
        for block in self._blocks(b"\0", end_ns, bytes_max):
            yield from block.split(b"\0")[:-1]

    def lines(self, end_ns: int, bytes_max: int) -> Iterator[bytes]:
        """Yield blocks of whole lines."""
        return self._blocks(b"\n", end_ns, bytes_max)

    def _blocks(self, end: bytes, end_ns: int, bytes_max: int) -> Iterator[bytes]:
        rest: list[bytes] = []
        try:
            for data in _iter_output(self._process, end_ns):
                self.read_bytes += len(data or b"")
                if data is None or self.read_bytes > bytes_max:
                    self.is_cut = True
                    return
                head, separator, tail = data.rpartition(end)
                if separator:
                    yield b"".join((*rest, head, separator))
                    rest = []
                rest.append(tail)
            self.status = self._process.wait()
        finally:
            end_git(self._process)


def _parse_raw(
    tokens: Iterator[bytes], prefix: bytes, *, has_renames: bool
) -> tuple[dict[bytes, list[FileVersionChange]], bytes]:
    """Return the changes of each commit, and the last commit."""
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
            versions = (Version(path, blob) for path, blob in zip(olds, old, strict=False) if any(blob))
            changes[commit].append(FileVersionChange(Version(paths[-1], new), tuple(versions)))
    except (ValueError, IndexError, KeyError) as error:
        raise GitError("git does not report which commits changed") from error
    except StopIteration:
        pass  # The output was cut within a change.
    return changes, commit


def _iter_output(process: subprocess.Popen[bytes], end_ns: int) -> Iterator[bytes | None]:
    """Yield blocks of git's output, and None if the time is up.

    Standard error is read too, so that git does not block.
    """
    assert process.stdout is not None
    assert process.stderr is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        selector.register(process.stderr, selectors.EVENT_READ)
        while selector.get_map():
            remaining_ns = end_ns - running_ns()
            ready = selector.select(max(remaining_ns, 0) / 1e9)
            if remaining_ns <= 0 or not ready:
                yield None
                return
            for key, _ in ready:
                data = os.read(key.fd, _READ_BYTES)
                if not data:
                    selector.unregister(key.fileobj)
                elif key.fileobj is process.stdout:
                    yield data


def _from_hex(name: bytes) -> bytes:
    return bytes.fromhex(name.decode("ascii"))


def begins_in(directory: bytes) -> bool:
    """Return whether a repository begins in a directory and not above it."""
    return os.path.lexists(os.path.join(directory, b".git"))
