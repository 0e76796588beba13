"""How often functions of a batch were changed: of each its own commits, not those of its file.

A file of a batch is found in the history by its content. If no commit of the last year made that content, as in a work
tree with changes that are not committed, its lines are first compared with those of the newest commit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property

from codebatch.errors import CodebatchError
from codebatch.git.history import FileVersionChange, Version, blob_of
from codebatch.git.patches import Hunk, Pair
from codebatch.operations.history.function_history import CommitChanges, Count, Lines
from codebatch.operations.history.history_cache import KeptHistory
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.query.answers.function_lines import FunctionLines, FunctionLocation

_COMPARED_LINES_MAX = 3_000
"""If more lines differ, all count as changed, since a comparison would take too long."""


class FunctionChanges:
    """The changes of functions of a batch in the year before the newest commit."""

    def __init__(self, question: BatchQuery, history: KeptHistory) -> None:
        self._question = question
        self._history = history
        self._lines = FunctionLines(question.records)
        self._edits: list[FileVersionChange] = []
        self._hunks: dict[Pair, tuple[Hunk, ...]] = {}
        self._versions_found: dict[bytes, Version | None] = {}
        self._counted: dict[FunctionLocation, Count] = {}
        self.is_cut = False

    def count(self, places: Iterable[FunctionLocation]) -> dict[FunctionLocation, Count]:
        """In how many commits each function was changed, as far as that is known. Raises GitError, StoreCorrupt.

        `is_cut` is set if git needs more time for that.
        """
        wanted = [each for each in places if each not in self._counted]
        paths = dict.fromkeys(each.path for each in wanted)
        self._find_versions([path for path in paths if path in self._paths and path not in self._versions_found])
        found: dict[FunctionLocation, tuple[Version, Lines]] = {}
        functions: dict[Version, list[Lines]] = {}
        for each in wanted:
            # A path that no commit made was not changed, unless a commit is unknown.
            self._counted[each] = Count(0, each.path not in self._paths and self._history.is_whole)
            if each.path not in self._paths:
                continue
            version, end = self._versions_found[each.path], self._lines.end_of(each)
            if version is not None and end is not None:
                found[each] = version, Lines(each.line, end)
                functions.setdefault(version, []).append(found[each][1])
        if functions:
            edits = CommitChanges(b"", (), tuple(self._edits))
            counted, is_cut = self._history.count_changes(functions, edits, self._hunks)
            self.is_cut |= is_cut
            self._counted |= {each: counted[key] for each, key in found.items()}
        return self._counted

    def keep(self) -> None:
        """Keep what was read of the history for later questions."""
        self._history.keep()

    @cached_property
    def _versions(self) -> frozenset[Version]:
        return frozenset(change.new for commit in self._history.commits for change in commit.changes)

    @cached_property
    def _paths(self) -> frozenset[bytes]:
        return frozenset(each.path for each in self._versions)

    def _find_versions(self, paths: Collection[bytes]) -> None:
        """Find the version of each file in which the history goes on; None if its content is lost."""
        edited: dict[bytes, bytes] = {}
        for path in paths:
            content = self._read(path)
            self._versions_found[path] = None
            if content is None:
                continue
            # git may have replaced the ends of lines when it wrote the file.
            for each in (content, content.replace(b"\r\n", b"\n")):
                version = Version(path, blob_of(each, self._history.commit))
                if version in self._versions:
                    self._versions_found[path] = version
                    break
            else:
                edited[path] = each
        for path, committed in self._history.read_committed(edited).items():
            version = Version(path, blob_of(edited[path], self._history.commit))
            old = Version(path, blob_of(committed, self._history.commit))
            self._versions_found[path] = version
            if old != version:
                self._edits.append(FileVersionChange(version, (old,)))
                self._hunks[old.blob, version.blob] = compare_lines(committed, edited[path])

    def _read(self, path: bytes) -> bytes | None:
        entry = self._question.records.snapshot.entry(path)
        try:
            return None if entry is None else self._question.records.read_object(entry)
        except CodebatchError:
            return None


def compare_lines(old: bytes, new: bytes) -> tuple[Hunk, ...]:
    """The lines in which two contents differ."""
    import difflib  # 3 ms, and only if files were edited

    before, after = old.split(b"\n"), new.split(b"\n")
    least = min(len(before), len(after))
    first = next((each for each in range(least) if before[each] != after[each]), least)
    last = next((each for each in range(least - first) if before[-1 - each] != after[-1 - each]), least - first)
    one, other = before[first : len(before) - last], after[first : len(after) - last]
    if max(len(one), len(other)) > _COMPARED_LINES_MAX:
        return (Hunk(first + 1, first + 1 + len(one), first + 1, first + 1 + len(other)),)
    matched = difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    start = first + 1
    return tuple(
        Hunk(start + old_start, start + old_end, start + new_start, start + new_end)
        for tag, old_start, old_end, new_start, new_end in matched
        if tag != "equal"
    )
