"""The commits of the last year of a work tree, as git has them: the versions of files, and the lines that differ.

git is asked as `git.py` asks: no setting of the repository has a say. Every answer is bounded in commits, bytes and
time; what was read by then is of the newest commits. git may name any path, also twice in one commit: callers only
look paths up. `list_commits` names the commits, `read_commits` reads which versions of files each of them made of
which, and `read_hunks` reads the lines in which two versions differ, of chosen files alone: that is what takes long.
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

_READ_TOGETHER = 1_024
"""So many commits are read at a time. git reads merges apart, and a cut shall leave the newest commits whole."""
_HEAD_SECONDS = 5.0
_SHA1_DIGITS = 40
_READ_BYTES = 1 << 16
_STANDING = ("rev-parse", "--is-shallow-repository", "HEAD^{commit}", "HEAD:./")
# A file of more bytes is binary for git: it has no lines, and takes no time.
_BIG_FILE = ("-c", "core.bigFileThreshold=1m")
# Of a hostile repository: no other program, no file of orders, no other way to compare.
_DIFF = (
    "diff-tree", "--stdin", "-r", "--full-index", "--no-ext-diff", "--no-textconv", "--no-color",
    "--ignore-submodules=none", "-O/dev/null",
)  # fmt: skip
_RAW = (*_BIG_FILE, *_DIFF, "-c", "--raw", "-z")
_FIND_RENAMES = ("-M50%",)
_RENAMES = "-l1000"
_RENAMES_OF_MERGES = "-l20"
"""A merge of trees that differ in many files would take long, and few files are renamed in one parent alone."""
_LINES = (
    "-p", "-U0", "--inter-hunk-context=0", "--diff-algorithm=myers", "--indent-heuristic",
    "--irreversible-delete",
)  # fmt: skip


class Head(msgspec.Struct, frozen=True):
    """The newest commit of a work tree. `is_shallow`: what was before some commit is not there."""

    commit: str
    is_shallow: bool


class Version(NamedTuple):
    """A file as a commit has it: its path, and the beginning of the name of its blob."""

    path: bytes
    blob: bytes


class FileVersionChange(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A version of a file that a commit made, and the versions that it was made of, one of each parent.

    `old` is empty if the file is new. A merge has a change only if the file differs from that of every parent.
    """

    new: Version
    old: tuple[Version, ...]


class ListedCommit(NamedTuple):
    """A commit and its parents by their names."""

    name: bytes
    parents: tuple[bytes, ...]

    @property
    def is_merge(self) -> bool:
        """Whether it has several parents."""
        return len(self.parents) > 1


class CommitComparison(NamedTuple):
    """A commit that is compared with one of its parents, or with each of them."""

    commit: bytes
    parent: bytes | None


class Advance(Protocol):
    """A function that is told how much of a reading is done."""

    def __call__(self, done: int, planned: int) -> None: ...


def ignore_advance(done: int, planned: int) -> None:
    """Do nothing."""


class CommitReading(NamedTuple):
    """Changes by the name of the commit, of all that were asked for unless `is_cut`."""

    changes: dict[bytes, tuple[FileVersionChange, ...]]
    is_cut: bool


class HunkReading(NamedTuple):
    """Hunks by pair, of all that were asked for unless `is_cut`. A pair without hunks cannot be compared by lines."""

    hunks: dict[Pair, tuple[Hunk, ...]]
    is_cut: bool


def find_head(git: str, directory: bytes) -> Head:
    """The newest commit that has files below a directory. Raises GitError where there is none."""
    try:
        told = ask_git(git, directory, _STANDING, _HEAD_SECONDS, is_top=begins_in(directory)).split()
    except GitError as error:
        if str(error).startswith("ambiguous argument"):  # So git says that it does not know it.
            raise GitError("the git repository has no readable commit") from error
        raise
    if len(told) != 3:
        raise GitError("git does not report the newest commit")
    return Head(told[1].decode("ascii", "replace"), told[0] == b"true")


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
    """Read what commits changed below a directory, in their order. Raises GitError.

    The oldest commit of a shallow repository seems to make every file, and so changes none. If the bounds do not
    suffice for the first commit, it has no changes.
    """
    prefix = ask_git(git, directory, ("rev-parse", "--show-prefix"), _HEAD_SECONDS, is_top=begins_in(directory))[:-1]
    root = () if head.is_shallow else ("--root",)
    reader = _ChangeReader(git, directory, prefix, root, running_ns() + round(seconds_max * 1e9), bytes_max)
    found: dict[bytes, tuple[FileVersionChange, ...]] = {}
    for start in range(0, len(commits), _READ_TOGETHER):
        advance(start, len(commits))
        found |= reader.read(commits[start : start + _READ_TOGETHER])
        if reader.is_cut:
            found.setdefault(commits[0].name, ())  # Or else no other reading gets further.
            break
    return CommitReading(found, reader.is_cut)


class _ChangeReader(msgspec.Struct):
    """Reads what commits changed, until its bounds are reached."""

    git: str
    directory: bytes
    prefix: bytes
    root: tuple[str, ...]
    end_ns: int
    bytes_max: int
    is_cut: bool = False

    def read(self, commits: Sequence[ListedCommit]) -> dict[bytes, tuple[FileVersionChange, ...]]:
        """Return the changes of each commit that could be read."""
        others = [each.name for each in commits if not each.is_merge]
        merges = {each.name: len(each.parents) for each in commits if each.is_merge}
        found = self._read(list(merges), "")
        # To look for renames in all merges takes six times as long. They matter if a parent lacks a file.
        moved = [
            name for name, changes in found.items() if any(len(each.old) < merges[name] for each in changes)
        ]  # fmt: skip
        found = {name: changes for name, changes in found.items() if name not in moved}
        return found | self._read(moved, _RENAMES_OF_MERGES) | self._read(others, _RENAMES)

    def _read(self, names: list[bytes], renames: str) -> dict[bytes, tuple[FileVersionChange, ...]]:
        if not names or self.is_cut:
            return {}
        finding = (*_FIND_RENAMES, renames, "--combined-all-paths") if renames else ("--no-renames",)
        output = _Output(self.git, self.directory, (*_RAW, *finding, *self.root, "--", "."), map(bytes.hex, names))
        changes, last = _parse_raw(
            output.tokens(self.end_ns, self.bytes_max), self.prefix, has_renames=bool(renames)
        )  # fmt: skip
        if output.status and renames:  # To find renames git reads files, which a partial clone lacks.
            return self._read(names, "")
        if output.status:
            raise GitError(f"git ended with status {output.status}")
        self.bytes_max -= output.read_bytes
        if output.is_cut:
            self.is_cut = True
            names = names[: names.index(last)] if last in changes else []  # The last commit may be read in part.
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
    """Read the hunks of pairs of versions at some paths, each of the commit that made the new one. Raises GitError."""
    end_ns = running_ns() + round(seconds_max * 1e9)
    compared = dict.fromkeys(wanted.values())
    arguments = (*_BIG_FILE, *_DIFF, *_FIND_RENAMES, _RENAMES, "--root", "-m", *_LINES, "--")
    lines = (" ".join(name.hex() for name in each if name is not None) for each in compared)
    output = _Output(git, directory, (*arguments, *sorted(paths)), lines)
    found = parse_patch(output.lines(end_ns, bytes_max))
    pairs: Iterable[Pair] = wanted
    if output.status:  # It lacks a version. The last pair may be read in part.
        found.pop(next(reversed(found), (b"", b"")), None)
    if output.is_cut:
        # The last pair may be read in part. But if there is none, no other reading gets further.
        last = next(reversed(found), None)
        pairs = [each for each in wanted if each in found and each != last] or list(wanted)[:1]
    return HunkReading({pair: tuple(found.get(pair, ())) for pair in pairs}, output.is_cut)


def read_committed(git: str, directory: bytes, head: Head, paths: Collection[bytes]) -> dict[bytes, bytes]:
    """Read the content of files below a directory as a commit has them, of those that it has. Raises GitError."""
    is_top = begins_in(directory)
    tree: tuple[str | bytes, ...] = ("ls-tree", "-z", head.commit, "--", *sorted(paths))
    found: dict[bytes, bytes] = {}
    for entry in ask_git(git, directory, tree, _HEAD_SECONDS, is_top=is_top).split(b"\0")[:-1]:
        about, _, path = entry.partition(b"\t")
        _, kind, blob = about.split(b" ")
        if kind == b"blob" and path in paths:
            found[path] = ask_git(git, directory, ("cat-file", "blob", blob), _HEAD_SECONDS, is_top=is_top)
    return found


def blob_of(content: bytes, commit: str) -> bytes:
    """The name that a content has as a version of a file, in the repository of a commit."""
    new = hashlib.sha1 if len(commit) == _SHA1_DIGITS else hashlib.sha256
    return new(b"blob %d\0%b" % (len(content), content), usedforsecurity=False).digest()[:BLOB_BYTES]


class _Output:
    """What `git diff-tree` writes about commits, to be read once and to its end.

    `is_cut`: that was too much or took too long. `status` is that of git.
    """

    def __init__(self, git: str, directory: bytes, arguments: tuple[str | bytes, ...], lines: Iterable[str]) -> None:
        """Start git. Each line names a commit, and may name the parents with which it is compared."""
        self.is_cut = False
        self.read_bytes = 0
        self.status = 0
        is_top = begins_in(directory)
        with os.fdopen(os.memfd_create("commits"), "w+b") as given:
            given.writelines(line.encode("ascii") + b"\n" for line in lines)
            given.seek(0)
            self._process = start_git(git, directory, arguments, is_top=is_top, given=given.fileno())

    def tokens(self, end_ns: int, bytes_max: int) -> Iterator[bytes]:
        """What ends with a NUL."""
        for block in self._blocks(b"\0", end_ns, bytes_max):
            yield from block.split(b"\0")[:-1]

    def lines(self, end_ns: int, bytes_max: int) -> Iterator[bytes]:
        """Blocks of whole lines."""
        return self._blocks(b"\n", end_ns, bytes_max)

    def _blocks(self, end: bytes, end_ns: int, bytes_max: int) -> Iterator[bytes]:
        rest: list[bytes] = []
        try:
            for data in _iter_output(self._process, end_ns):
                self.read_bytes += len(data or b"")
                if data is None or self.read_bytes > bytes_max:
                    self.is_cut = True
                    return
                head, found, tail = data.rpartition(end)
                if found:
                    yield b"".join((*rest, head, found))
                    rest = []
                rest.append(tail)
            self.status = self._process.wait()
        finally:
            end_git(self._process)


def _parse_raw(
    tokens: Iterator[bytes], prefix: bytes, *, has_renames: bool
) -> tuple[dict[bytes, list[FileVersionChange]], bytes]:
    """Return the changes of each commit, and the last commit."""
    found: dict[bytes, list[FileVersionChange]] = {}
    commit = b""
    try:
        for token in tokens:
            if not token.startswith(b":"):
                commit = bytes.fromhex(token.decode("ascii"))
                found[commit] = []
                continue
            parents = len(token) - len(token.lstrip(b":"))
            fields = token[parents:].split()
            blobs, status = fields[parents + 1 : -1], fields[-1]
            named = parents + 1 if parents > 1 and has_renames else 1 + (status[:1] in b"RC" and parents == 1)
            paths = [next(tokens).removeprefix(prefix) for _ in range(named)]
            *old, new = map(blob_from_name, blobs)
            if not any(new):
                continue
            olds = paths if len(paths) > 1 else paths * parents
            versions = (Version(path, blob) for path, blob in zip(olds, old, strict=False) if any(blob))
            found[commit].append(FileVersionChange(Version(paths[-1], new), tuple(versions)))
    except (ValueError, IndexError, KeyError) as error:
        raise GitError("git does not report which commits changed") from error
    except StopIteration:
        pass  # It was cut within a change.
    return found, commit


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


def _from_hex(name: bytes) -> bytes:
    return bytes.fromhex(name.decode("ascii"))


def begins_in(directory: bytes) -> bool:
    """Whether a repository begins in a directory, and not above it."""
    return os.path.lexists(os.path.join(directory, b".git"))
