"""The git history of a work tree, cached in the store (`cache/churn-<16 hex>.bin`).

The changes of a commit are immutable, so git reads each commit only once. The hunks between two versions are immutable
too. If the time limit is reached, the next query reads the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from codebatch.git.history import (
    COMMITS_MAX,
    HISTORY_SECONDS_MAX,
    FileVersion,
    FileVersionChange,
    HeadCommit,
    ListedCommit,
    find_head,
    list_commits,
    read_commits,
    read_committed_files,
    read_hunks,
)
from codebatch.git.patches import BlobPair, Hunk
from codebatch.git.repository import GitError, find_git
from codebatch.model.digest import digest_bytes
from codebatch.operations import PhaseCallback, ignore_phase
from codebatch.operations.history.function_history import (
    ChangeCount,
    CommitChanges,
    FunctionKey,
    LineRange,
    count_changes,
    select_changes,
)
from codebatch.store import layout
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.cache_files import read_cached, write_cached

__all__ = ["CommitHistory", "GitError", "find_history", "find_newest"]

_MAGIC = b"cbchurn\3"
_MERGES_READ_AHEAD = 16
"""Initial limit for the number of merges with missing hunks through which a function is traced.

Beyond missing hunks, tracing is a guess, but shows which other hunks will be needed. They are then read at once. The
limit is low because few merges change a function. It is doubled in each step.
"""


class _CachedHunks(msgspec.Struct, frozen=True, array_like=True, gc=False):
    pair: BlobPair
    hunks: tuple[Hunk, ...]


class _CachedHistory(msgspec.Struct, frozen=True, array_like=True):
    directory: bytes
    head: HeadCommit
    is_cut: bool
    commits: tuple[CommitChanges, ...]
    hunks: tuple[_CachedHunks, ...]


class CommitHistory:
    """The commits of the last year, newest first. The year ends with the newest commit.

    `is_cut` is set if older commits of that year have not been read.
    """

    def __init__(
        self, store: StoreDir, directory: bytes, head: HeadCommit, report_phase: PhaseCallback = ignore_phase
    ) -> None:
        """Load the cache and read new commits. Raises GitError."""
        self._report_phase = report_phase
        self._remaining_seconds = HISTORY_SECONDS_MAX
        self._compared = 0
        self._store = store
        self._directory = directory
        self._head = head
        self._name = layout.churn_cache_name(digest_bytes(directory))
        cached = read_cached(store, self._name, _MAGIC, _CachedHistory)
        if cached is None or cached.directory != directory or cached.head.is_shallow != head.is_shallow:
            cached = _CachedHistory(directory, head, True, (), ())
        self.commits: tuple[CommitChanges, ...] = cached.commits
        self.is_cut = cached.is_cut
        self._is_saved = True
        self._hunks = {cached_hunks.pair: cached_hunks.hunks for cached_hunks in cached.hunks}
        if cached.head != head or cached.is_cut:
            self._read_commits({cached_hunks.name: cached_hunks.changes for cached_hunks in cached.commits})
            self._is_saved = False
            self.save()

    @property
    def changed_commits(self) -> int:
        """The number of known commits except merges."""
        return sum(commit.is_counted for commit in self.commits)

    @property
    def is_complete(self) -> bool:
        """Whether all commits of the year were read. A shallow clone may lack some of them."""
        return not self.is_cut and not (self._head.is_shallow and any(not commit.parents for commit in self.commits))

    @property
    def commit(self) -> str:
        """The name of the newest commit."""
        return self._head.commit

    def count_changes(
        self,
        functions: Mapping[FileVersion, Collection[LineRange]],
        edits: CommitChanges,
        edited: Mapping[BlobPair, tuple[Hunk, ...]],
    ) -> tuple[dict[FunctionKey, ChangeCount], bool]:
        """Count the commits that changed each function. Return the counts, and whether git ran out of time.

        If git ran out of time, some counts are not exact. `edits` are the uncommitted changes, and `edited` the hunks
        of these changes. Raises GitError.
        """
        commits, paths = select_changes((edits, *self.commits), functions)
        merges_ahead = _MERGES_READ_AHEAD
        while True:
            hunks = {**self._hunks, **edited}
            counting = count_changes(
                commits, hunks, functions, is_whole=self.is_complete, merges_ahead=merges_ahead
            )  # fmt: skip
            if not counting.missing or self._remaining_seconds <= 0:
                return counting.counts, bool(counting.missing)
            self._report_phase("comparing versions", self._compared, self._compared + len(counting.missing), "versions")
            read = read_hunks(
                _require_git(), self._directory, counting.missing, paths, seconds_max=self._remaining_seconds
            )
            self._remaining_seconds -= read.seconds
            self._hunks |= read.hunks
            self._is_saved = False
            self._compared += len(read.hunks)
            if read.is_cut:
                self._remaining_seconds = 0.0
            merges_ahead *= 2

    def read_committed(self, paths: Collection[bytes]) -> dict[bytes, bytes]:
        """Return the content of files in the newest commit.

        Files that do not exist in this commit are omitted. Raises GitError.
        """
        return read_committed_files(_require_git(), self._directory, self._head, paths) if paths else {}

    def _read_commits(self, known: dict[bytes, tuple[FileVersionChange, ...]]) -> None:
        git = _require_git()
        listed = list_commits(git, self._directory, self._head)
        self.is_cut = len(listed) > COMMITS_MAX
        del listed[COMMITS_MAX:]
        unread = [commit for commit in listed if commit.name not in known]
        if unread:
            commits_read = read_commits(
                git,
                self._directory,
                self._head,
                unread,
                advance=lambda done, planned: self._report_phase("reading history", done, planned, "commits"),
            )
            known |= commits_read.changes
            self.is_cut |= commits_read.is_cut
        self.commits = tuple(_read_until_unknown(listed, known))

    def save(self) -> None:
        """Save the history in the store, without hunks of commits older than a year.

        If nothing new was read, do nothing.
        """
        if self._is_saved:
            return
        self._is_saved = True
        pairs = {
            (old.blob, change.new.blob)
            for commit in self.commits
            for change in commit.changes
            for old in change.old
        }  # fmt: skip
        hunks = tuple(_CachedHunks(pair, hunks) for pair, hunks in self._hunks.items() if pair in pairs)
        cached = _CachedHistory(self._directory, self._head, self.is_cut, self.commits, hunks)
        write_cached(self._store, self._name, _MAGIC, cached)


def _read_until_unknown(
    listed: list[ListedCommit], known: Mapping[bytes, tuple[FileVersionChange, ...]]
) -> list[CommitChanges]:
    """Return the commits before the first commit whose changes are unknown, newest first.

    Older commits are omitted: renames cannot be followed past the unknown commit.
    """
    commits = []
    for commit in listed:
        if commit.name not in known:
            break
        commits.append(CommitChanges(commit.name, commit.parents, known[commit.name]))
    return commits


def find_newest(directory: bytes) -> HeadCommit:
    """Return the commit at HEAD of a work tree. Raises GitError."""
    return find_head(_require_git(), directory)


def find_history(
    store: StoreDir, directory: bytes, head: HeadCommit, report_phase: PhaseCallback = ignore_phase
) -> CommitHistory:
    """Return the history of a work tree in the year before its newest commit. Raises GitError."""
    return CommitHistory(store, directory, head, report_phase)


def _require_git() -> str:
    git = find_git()
    if git is None:
        raise GitError("git is not available")
    return git
