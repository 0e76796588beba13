"""In which commits functions were changed: their lines, followed back through the versions of their files.

As `git log -L` does it: the lines of a function in a version are mapped to the versions that it was made of. A commit
counts if it changed one of these lines. A file that was renamed is followed. A merge is no change: lines that one
parent has unchanged are of the first such parent, and otherwise of all parents. So most merges are compared with their
first parent alone. Hunks that are not known yet are named by `count_changes`, so that all that can be foreseen are
read together: it goes on as if versions with unknown hunks had the same lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from codebatch.git.history import CommitComparison, FileVersionChange, Version
from codebatch.git.patches import Hunk, Pair


class CommitChanges(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The changes of one commit; of a merge those of files that differ from that of every parent.

    Changes that are not committed have no name.
    """

    name: bytes
    parents: tuple[bytes, ...]
    changes: tuple[FileVersionChange, ...]

    @property
    def is_counted(self) -> bool:
        """Whether it is a change of what it changed."""
        return self.name != b"" and len(self.parents) < 2


class Lines(msgspec.Struct, frozen=True):
    """Lines of a file, from the first to behind the last."""

    start: int
    end: int


def count_file_changes(commits: Iterable[CommitChanges]) -> dict[bytes, int]:
    """How many commits but merges changed each file, under its name or an earlier one. The newest commit is first."""
    counted: Counter[bytes] = Counter()
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
            counted.update(names)
    return dict(counted)


def select_changes(
    commits: Iterable[CommitChanges], heads: Iterable[Version]
) -> tuple[tuple[CommitChanges, ...], frozenset[bytes]]:
    """Return the changes that may have led to some versions, and all paths of these files."""
    paths = {each.path for each in heads}
    selected: list[CommitChanges] = []
    for commit in commits:
        changes = tuple(each for each in commit.changes if each.new.path in paths)
        if changes:
            paths.update(old.path for each in changes for old in each.old)
            selected.append(CommitChanges(commit.name, commit.parents, changes))
    return tuple(selected), frozenset(paths)


FunctionKey = tuple[Version, Lines]


class Count(NamedTuple):
    """How many changes are known, and whether these are all."""

    known: int
    is_exact: bool


class Counting(NamedTuple):
    """Counts of changes by function, and the comparisons of commits with parents that are needed for more."""

    counts: dict[FunctionKey, Count]
    lacking: dict[Pair, CommitComparison]


def count_changes(
    commits: Iterable[CommitChanges],
    hunks: Mapping[Pair, Sequence[Hunk]],
    functions: Mapping[Version, Collection[Lines]],
    *,
    is_whole: bool = True,
    merges_ahead: int = 0,
) -> Counting:
    """Count the commits, except merges, that changed each function, given by its lines in a version of a file.

    A count is not exact if it is not known in which lines two versions of a function's file differ, or if a function
    is older than the first of the commits and these are not `is_whole`. Behind so many merges with unknown hunks as
    `merges_ahead`, nothing is foreseen.
    """
    walk = _Walk(hunks, functions, merges_ahead)
    for commit in commits:
        for change in commit.changes:
            walk.pass_change(commit, change)
    if not is_whole:
        walk.inexact.update(key for followed in walk.followed.values() for key in followed)
    counts = {key: Count(count, key not in walk.inexact) for key, count in walk.counted.items()}
    return Counting(counts, walk.lacking)


class _FollowedLines(msgspec.Struct, frozen=True):
    """Lines of a version that are followed, and past how many more merges with unknown hunks."""

    lines: Lines
    ahead: int


class _Walk:
    """Functions on their way back through the history."""

    def __init__(
        self,
        hunks: Mapping[Pair, Sequence[Hunk]],
        functions: Mapping[Version, Collection[Lines]],
        merges_ahead: int,
    ) -> None:
        self._hunks = hunks
        self.followed: dict[Version, dict[FunctionKey, _FollowedLines]] = {
            version: {(version, each): _FollowedLines(each, merges_ahead) for each in lines}
            for version, lines in functions.items()
        }
        self.counted: dict[FunctionKey, int] = {key: 0 for lines in self.followed.values() for key in lines}
        self.inexact: set[FunctionKey] = set()
        self.lacking: dict[Pair, CommitComparison] = {}

    def pass_change(self, commit: CommitChanges, change: FileVersionChange) -> None:
        """Follow the functions of a version to those that it was made of."""
        for key, place in self.followed.pop(change.new, {}).items():
            origins: list[tuple[Version, Lines]] = []
            is_known = True
            for number, old in enumerate(change.old):
                lines = place.lines
                if old.blob != change.new.blob:
                    hunks = self._hunks.get((old.blob, change.new.blob))
                    if hunks is None:
                        self._foresee(commit, change, number, key, place)
                        if place.ahead > 0:
                            for each, lines in origins:
                                self._follow(each, key, _FollowedLines(lines, place.ahead - 1))
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
                self._follow(old, key, _FollowedLines(lines, place.ahead))
                break
            else:
                if not is_known:
                    self.inexact.add(key)
                    continue
                if key not in self.inexact:
                    self.counted[key] += commit.is_counted
                for old, lines in origins:
                    self._follow(old, key, _FollowedLines(lines, place.ahead))

    def _foresee(
        self, commit: CommitChanges, change: FileVersionChange, number: int, key: FunctionKey, place: _FollowedLines
    ) -> None:
        """Note a lack of hunks, and go on as if the lines were the same."""
        self.inexact.add(key)
        # If some parent has no such file, it is not known which parent a version is of.
        is_plain = len(change.old) == len(commit.parents)
        old = change.old[number]
        parent = commit.parents[number] if is_plain else None
        self.lacking.setdefault((old.blob, change.new.blob), CommitComparison(commit.name, parent))
        ahead = place.ahead - (len(commit.parents) > 1)
        if ahead >= 0:
            self._follow(old, key, _FollowedLines(place.lines, ahead))

    def _follow(self, version: Version, key: FunctionKey, place: _FollowedLines) -> None:
        older = self.followed.setdefault(version, {})
        other = older.get(key, place)
        start, end = min(place.lines.start, other.lines.start), max(place.lines.end, other.lines.end)
        older[key] = _FollowedLines(Lines(start, end), max(place.ahead, other.ahead))


class _Origin(NamedTuple):
    """The lines of an older version that some lines come from, None if they are new there."""

    lines: Lines | None
    is_changed: bool


def _map_lines(hunks: Iterable[Hunk], lines: Lines) -> _Origin:
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
    return _Origin(Lines(start, end) if start < end else None, is_changed)
