"""In which commits functions were changed: their lines, followed back through the versions of their files.

As `git log -L` does it: the lines of a function in a version are mapped to the versions that it was made of. A commit
counts if it changed one of these lines. A file that was renamed is followed. A merge is no change: lines that one
parent has unchanged are of that parent, and otherwise of all parents. So each function costs little, and the hunks of
a commit are read once for all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from codebatch.system.git_history import Change, ListedCommit, Version
from codebatch.system.patches import Hunk, Pair


class CommitChanges(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The changes of one commit; of a merge those of files that differ from that of every parent."""

    name: bytes
    is_merge: bool
    changes: tuple[Change, ...]


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
        if not commit.is_merge:
            counted.update(names)
    return dict(counted)


def find_pairs(
    commits: Iterable[CommitChanges], heads: Iterable[Version]
) -> tuple[dict[Pair, ListedCommit], set[bytes]]:
    """Return the pairs of versions that led to some versions, each with its commit, and all paths of these files."""
    reached = set(heads)
    pairs: dict[Pair, ListedCommit] = {}
    paths: set[bytes] = {each.path for each in reached}
    for commit in commits:
        for change in commit.changes:
            if change.new not in reached:
                continue
            reached.remove(change.new)
            for old in change.old:
                reached.add(old)
                paths.add(old.path)
                if old.blob != change.new.blob:
                    pairs.setdefault((old.blob, change.new.blob), ListedCommit(commit.name, commit.is_merge))
    return pairs, paths


def count_changes(
    commits: Iterable[CommitChanges],
    hunks: Mapping[Pair, Sequence[Hunk]],
    functions: Mapping[Version, Collection[Lines]],
) -> dict[tuple[Version, Lines], int | None]:
    """Count the commits, except merges, that changed each function, given by its lines in a version of a file.

    If it is not known in which lines two versions of a function's file differ, the number is None.
    """
    followed = {version: {(version, each): each for each in lines} for version, lines in functions.items()}
    counted: dict[tuple[Version, Lines], int | None] = {key: 0 for lines in followed.values() for key in lines}
    for commit in commits:
        for change in commit.changes:
            for key, lines in followed.pop(change.new, {}).items():
                origins = [(old, _map_lines(hunks, old, change.new, lines)) for old in change.old]
                unchanged = [each for each in origins if not each[1].is_changed]
                before = counted[key]
                if before is None or not (unchanged or all(each.is_known for _, each in origins)):
                    counted[key] = None
                    continue
                counted[key] = before + (not unchanged and not commit.is_merge)
                for old, origin in unchanged[:1] or origins:
                    if origin.lines is not None:
                        older = followed.setdefault(old, {})
                        older[key] = _cover(older.get(key, origin.lines), origin.lines)
    return counted


class _Origin(msgspec.Struct, frozen=True):
    """The lines of an older version that some lines come from, None if they are new there or that is not known."""

    lines: Lines | None
    is_changed: bool
    is_known: bool = True


def _map_lines(hunks: Mapping[Pair, Sequence[Hunk]], old: Version, new: Version, lines: Lines) -> _Origin:
    if old.blob == new.blob:
        return _Origin(lines, is_changed=False)
    between = hunks.get((old.blob, new.blob))
    if not between:
        return _Origin(None, is_changed=True, is_known=False)
    start, end, is_changed = lines.start, lines.end, False
    for hunk in between:
        if hunk.new_end <= lines.start:
            start = lines.start + hunk.old_end - hunk.new_end
            end = lines.end + hunk.old_end - hunk.new_end
        elif hunk.new_start < lines.end:
            is_changed = True
            if hunk.new_start <= lines.start:
                start = hunk.old_start
            end = hunk.old_end + max(lines.end - hunk.new_end, 0)
    return _Origin(Lines(start, end) if start < end else None, is_changed)


def _cover(one: Lines, other: Lines) -> Lines:
    return Lines(min(one.start, other.start), max(one.end, other.end))
