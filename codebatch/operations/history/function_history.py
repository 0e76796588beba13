"""Counting of the commits that changed a function.

The lines of the function are traced back through the versions of its file, as in `git log -L`. The lines in a version
are mapped to the lines of the parent versions. A commit counts if it changed one of these lines. Renamed files are
followed.

A merge does not count as a change. If a parent has the same lines, tracing continues only in the first such parent,
otherwise in all parents. So most merges are compared only with their first parent.

Hunks are the differences between two versions. `count_changes` also returns the pairs of versions whose hunks it lacks.
To find many such pairs in one pass, it assumes that the lines did not change between these versions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from codebatch.git.history import CommitComparison, FileVersion, FileVersionChange
from codebatch.git.patches import BlobPair, Hunk


class CommitChanges(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The changes of one commit. A merge lists only files that differ from those of every parent.

    Uncommitted changes are represented by an empty name.
    """

    name: bytes
    parents: tuple[bytes, ...]
    changes: tuple[FileVersionChange, ...]

    @property
    def is_counted(self) -> bool:
        """Whether the commit counts as a change of its files. Merges and uncommitted changes do not count."""
        return self.name != b"" and len(self.parents) < 2


class LineRange(msgspec.Struct, frozen=True):
    """A range of lines of a file; `end` is exclusive."""

    start: int
    end: int


def count_file_changes(commits: Iterable[CommitChanges]) -> dict[bytes, int]:
    """Return for each file the number of commits that changed it under its present or an earlier name.

    Merges are not counted. `commits` must be sorted from newest to oldest.
    """
    counts: Counter[bytes] = Counter()
    later_names: dict[bytes, frozenset[bytes]] = {}
    for commit in commits:
        names: set[bytes] = set()
        for change in commit.changes:
            path = change.new.path
            later = later_names.get(path) or frozenset((path,))
            names |= later
            for old in change.old:
                if old.path != path:
                    later_names[old.path] = later | (later_names.get(old.path) or frozenset((old.path,)))
        if commit.is_counted:
            counts.update(names)
    return dict(counts)


def select_changes(
    commits: Iterable[CommitChanges], heads: Iterable[FileVersion]
) -> tuple[tuple[CommitChanges, ...], frozenset[bytes]]:
    """Return the changes that may have led to the given versions of files.

    Also return all past and present paths of these files.
    """
    paths = {change.path for change in heads}
    selected: list[CommitChanges] = []
    for commit in commits:
        changes = tuple(change for change in commit.changes if change.new.path in paths)
        if changes:
            paths.update(old.path for change in changes for old in change.old)
            selected.append(CommitChanges(commit.name, commit.parents, changes))
    return tuple(selected), frozenset(paths)


FunctionKey = tuple[FileVersion, LineRange]


class ChangeCount(NamedTuple):
    """A number of changes. If it is not exact, the function may have changed more often."""

    known: int
    is_exact: bool


class ChangeCounts(NamedTuple):
    """The change count of each function, and the pairs of versions whose differences would make all counts exact."""

    counts: dict[FunctionKey, ChangeCount]
    missing: dict[BlobPair, CommitComparison]


def count_changes(
    commits: Iterable[CommitChanges],
    hunks: Mapping[BlobPair, Sequence[Hunk]],
    functions: Mapping[FileVersion, Collection[LineRange]],
    *,
    is_whole: bool = True,
    merges_ahead: int = 0,
) -> ChangeCounts:
    """Count for each function the commits that changed it. Merges do not count.

    A function is given by its lines in a version of a file. Its count is not exact in two cases: hunks between two
    versions of the file are missing, or the function is older than the oldest commit and `is_whole` is False.

    A function is traced through at most `merges_ahead` merges with missing hunks.
    """
    walk = _HistoryWalk(hunks, functions, merges_ahead)
    for commit in commits:
        for change in commit.changes:
            walk.trace_change(commit, change)
    if not is_whole:
        walk.inexact.update(key for followed in walk.followed.values() for key in followed)
    counts = {key: ChangeCount(count, key not in walk.inexact) for key, count in walk.counted.items()}
    return ChangeCounts(counts, walk.missing_hunks)


class _FollowedLines(msgspec.Struct, frozen=True):
    """The lines of a version to which the lines of a function were traced.

    `ahead` is the number of merges with missing hunks through which tracing may continue.
    """

    lines: LineRange
    ahead: int


class _HistoryWalk:
    """The state of tracing functions back through the history."""

    def __init__(
        self,
        hunks: Mapping[BlobPair, Sequence[Hunk]],
        functions: Mapping[FileVersion, Collection[LineRange]],
        merges_ahead: int,
    ) -> None:
        self._hunks = hunks
        self.followed: dict[FileVersion, dict[FunctionKey, _FollowedLines]] = {
            version: {(version, lines_range): _FollowedLines(lines_range, merges_ahead) for lines_range in lines}
            for version, lines in functions.items()
        }
        self.counted: dict[FunctionKey, int] = {key: 0 for lines in self.followed.values() for key in lines}
        self.inexact: set[FunctionKey] = set()
        self.missing_hunks: dict[BlobPair, CommitComparison] = {}

    def trace_change(self, commit: CommitChanges, change: FileVersionChange) -> None:
        """Trace the functions of a version of a file to the versions of the parent commits."""
        for key, place in self.followed.pop(change.new, {}).items():
            origins: list[tuple[FileVersion, LineRange]] = []
            is_known = True
            for number, old in enumerate(change.old):
                lines = place.lines
                if old.blob != change.new.blob:
                    hunks = self._hunks.get((old.blob, change.new.blob))
                    if hunks is None:
                        self._record_missing_hunks(commit, change, number, key, place)
                        if place.ahead > 0:
                            for origin_version, lines in origins:
                                self._follow_lines(origin_version, key, _FollowedLines(lines, place.ahead - 1))
                        break
                    if not hunks:
                        is_known = False
                        continue
                    origin = _map_lines(hunks, lines)
                    if origin.is_changed:
                        origins += [(old, origin.lines)] if origin.lines is not None else []
                        continue
                    assert origin.lines is not None
                    lines = origin.lines
                self._follow_lines(old, key, _FollowedLines(lines, place.ahead))
                break
            else:
                if not is_known:
                    self.inexact.add(key)
                    continue
                if key not in self.inexact:
                    self.counted[key] += commit.is_counted
                for old, lines in origins:
                    self._follow_lines(old, key, _FollowedLines(lines, place.ahead))

    def _record_missing_hunks(
        self, commit: CommitChanges, change: FileVersionChange, number: int, key: FunctionKey, place: _FollowedLines
    ) -> None:
        """Record that hunks are missing, and continue with the same lines in the older version.

        This finds further missing hunks, so that all can be read at once. The count is marked as not exact.
        """
        self.inexact.add(key)
        # If a parent lacks the file, `change.old` is shorter than `parents`. Then the parent of a version is unknown.
        has_all_parents = len(change.old) == len(commit.parents)
        old = change.old[number]
        parent = commit.parents[number] if has_all_parents else None
        self.missing_hunks.setdefault((old.blob, change.new.blob), CommitComparison(commit.name, parent))
        ahead = place.ahead - (len(commit.parents) > 1)
        if ahead >= 0:
            self._follow_lines(old, key, _FollowedLines(place.lines, ahead))

    def _follow_lines(self, version: FileVersion, key: FunctionKey, place: _FollowedLines) -> None:
        older = self.followed.setdefault(version, {})
        other = older.get(key, place)
        start, end = min(place.lines.start, other.lines.start), max(place.lines.end, other.lines.end)
        older[key] = _FollowedLines(LineRange(start, end), max(place.ahead, other.ahead))


class _LinesOrigin(NamedTuple):
    """The lines of an older version from which some lines originate. `lines` is None if the lines are new."""

    lines: LineRange | None
    is_changed: bool


def _map_lines(hunks: Iterable[Hunk], lines: LineRange) -> _LinesOrigin:
    start, end, is_changed = lines.start, lines.end, False
    for hunk in hunks:
        if hunk.new_end <= lines.start:
            start = lines.start + hunk.old_end - hunk.new_end
            end = lines.end + hunk.old_end - hunk.new_end
        elif hunk.new_start < lines.end:
            is_changed = True
            if hunk.new_start <= lines.start:
                start = hunk.old_start
            end = hunk.old_end + max(lines.end - hunk.new_end, 0)
    return _LinesOrigin(LineRange(start, end) if start < end else None, is_changed)
