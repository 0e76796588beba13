"""The history of a work tree: asked of git, and kept in the store (`cache/churn-<16 hex>.bin`).

What a commit changed never changes, so only commits that are not known yet are read, and each of them once; so it is
with the lines in which two versions of a file differ. What lacked for want of time is read by the next question.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from codebatch.git.history import (
    COMMITS_MAX,
    HISTORY_SECONDS_MAX,
    FileVersionChange,
    Head,
    ListedCommit,
    Version,
    find_head,
    list_commits,
    read_commits,
    read_committed,
    read_hunks,
)
from codebatch.git.patches import Hunk, Pair
from codebatch.git.repository import GitError, find_git
from codebatch.model.digest import digest_bytes
from codebatch.operations import TellPhase, ignore_phase
from codebatch.operations.history.function_history import (
    CommitChanges,
    Count,
    FunctionKey,
    Lines,
    count_changes,
    select_changes,
)
from codebatch.store import layout
from codebatch.store.batches.store import StoreDir
from codebatch.store.cache_files import read_kept, write_kept
from codebatch.system.clock import running_ns

__all__ = ["GitError", "KeptHistory", "find_history", "find_newest"]

_MAGIC = b"cbchurn\3"
_MERGES_AHEAD = 16
"""A function changed in few merges. Only of so many, twice as many each time, are hunks read before they are needed."""


class _KeptHunks(msgspec.Struct, frozen=True, array_like=True, gc=False):
    pair: Pair
    hunks: tuple[Hunk, ...]


class _CachedHistory(msgspec.Struct, frozen=True, array_like=True):
    directory: bytes
    head: Head
    is_cut: bool
    commits: tuple[CommitChanges, ...]
    hunks: tuple[_KeptHunks, ...]


class KeptHistory:
    """The commits of the year before the newest one, the newest first. `is_cut`: older ones of that year lack."""

    def __init__(self, store: StoreDir, directory: bytes, head: Head, tell: TellPhase = ignore_phase) -> None:
        """Read what is new. Raises GitError."""
        self._tell = tell
        self._left_ns = round(HISTORY_SECONDS_MAX * 1e9)
        self._compared = 0
        self._store = store
        self._directory = directory
        self._head = head
        self._name = layout.churn_cache_name(digest_bytes(directory))
        kept = _decode(read_kept(store, self._name, _MAGIC))
        if kept is None or kept.directory != directory or kept.head.is_shallow != head.is_shallow:
            kept = _CachedHistory(directory, head, True, (), ())
        self.commits: tuple[CommitChanges, ...] = kept.commits
        self.is_cut = kept.is_cut
        self._is_kept = True
        self._hunks = {each.pair: each.hunks for each in kept.hunks}
        if kept.head != head or kept.is_cut:
            self._read({each.name: each.changes for each in kept.commits})
            self._is_kept = False
            self.keep()

    @property
    def changed_commits(self) -> int:
        """How many commits are known that are no merges."""
        return sum(each.is_counted for each in self.commits)

    @property
    def is_whole(self) -> bool:
        """Whether all commits of the year were read, and none is missing from the repository."""
        return not self.is_cut and not (self._head.is_shallow and any(not each.parents for each in self.commits))

    @property
    def commit(self) -> str:
        """The name of the newest commit."""
        return self._head.commit

    def count_changes(
        self,
        functions: Mapping[Version, Collection[Lines]],
        edits: CommitChanges,
        edited: Mapping[Pair, tuple[Hunk, ...]],
    ) -> tuple[dict[FunctionKey, Count], bool]:
        """In how many commits the lines of functions changed, and whether git needs more time. Raises GitError.

        `edits` are changes after the newest commit, `edited` the lines in which their versions differ.
        """
        commits, paths = select_changes((edits, *self.commits), functions)
        merges_ahead = _MERGES_AHEAD
        while True:
            hunks = {**self._hunks, **edited}
            found = count_changes(
                commits, hunks, functions, is_whole=self.is_whole, merges_ahead=merges_ahead
            )  # fmt: skip
            if not found.lacking or self._left_ns <= 0:
                return found.counts, bool(found.lacking)
            self._tell("comparing versions", self._compared, self._compared + len(found.lacking), "versions")
            began_ns = running_ns()
            read = read_hunks(_git(), self._directory, found.lacking, paths, seconds_max=self._left_ns / 1e9)
            self._left_ns -= running_ns() - began_ns
            self._hunks |= read.hunks
            self._is_kept = False
            self._compared += len(read.hunks)
            if read.is_cut:
                self._left_ns = 0
            merges_ahead *= 2

    def read_committed(self, paths: Collection[bytes]) -> dict[bytes, bytes]:
        """The content of files as the newest commit has them, of those that it has. Raises GitError."""
        return read_committed(_git(), self._directory, self._head, paths) if paths else {}

    def _read(self, known: dict[bytes, tuple[FileVersionChange, ...]]) -> None:
        git = _git()
        listed = list_commits(git, self._directory, self._head)
        self.is_cut = len(listed) > COMMITS_MAX
        del listed[COMMITS_MAX:]
        lacking = [each for each in listed if each.name not in known]
        if lacking:
            found = read_commits(
                git,
                self._directory,
                self._head,
                lacking,
                advance=lambda done, planned: self._tell("reading history", done, planned, "commits"),
            )
            known |= found.changes
            self.is_cut |= found.is_cut
        self.commits = tuple(_read_so_far(listed, known))

    def keep(self) -> None:
        """Store what was read, except the hunks of commits older than a year."""
        if self._is_kept:
            return
        self._is_kept = True
        pairs = {
            (old.blob, change.new.blob)
            for commit in self.commits
            for change in commit.changes
            for old in change.old
        }  # fmt: skip
        hunks = tuple(_KeptHunks(pair, hunks) for pair, hunks in self._hunks.items() if pair in pairs)
        kept = _CachedHistory(self._directory, self._head, self.is_cut, self.commits, hunks)
        write_kept(self._store, self._name, _MAGIC, msgspec.msgpack.encode(kept))


def _read_so_far(
    listed: list[ListedCommit], known: Mapping[bytes, tuple[FileVersionChange, ...]]
) -> list[CommitChanges]:
    """The commits before the first one that is not known: what is older may be of a version that none leads to."""
    found = []
    for each in listed:
        if each.name not in known:
            break
        found.append(CommitChanges(each.name, each.parents, known[each.name]))
    return found


def find_newest(directory: bytes) -> Head:
    """The newest commit of a work tree. Raises GitError."""
    return find_head(_git(), directory)


def find_history(store: StoreDir, directory: bytes, head: Head, tell: TellPhase = ignore_phase) -> KeptHistory:
    """The history of a work tree in the year before its newest commit. Raises GitError."""
    return KeptHistory(store, directory, head, tell)


def _git() -> str:
    git = find_git()
    if git is None:
        raise GitError("git is not available")
    return git


def _decode(body: bytes | None) -> _CachedHistory | None:
    try:
        return None if body is None else msgspec.msgpack.decode(body, type=_CachedHistory)
    except msgspec.DecodeError:
        return None
