"""The number of commits that changed each function of a batch. Other changes of its file do not count.

The version of a file in the history is found by the file's content. Content with uncommitted changes is in no commit,
so it is first compared with the newest commit.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from functools import cached_property

from codebatch.errors import CodebatchError
from codebatch.git.history import FileVersion, FileVersionChange, blob_hash_prefix
from codebatch.git.patches import BlobPair, Hunk
from codebatch.operations.history.function_history import ChangeCount, CommitChanges, LineRange
from codebatch.operations.history.history_cache import CommitHistory
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.query.answers.function_lines import FunctionLines, FunctionLocation

_COMPARED_LINES_MAX = 3_000
"""Maximum number of lines that may differ between two contents to be compared in detail.

If more lines differ, all of them count as changed.
"""


class FunctionChanges:
    """The changes of functions of a batch in the year before the newest commit."""

    def __init__(self, question: BatchQuery, history: CommitHistory) -> None:
        self._question = question
        self._history = history
        self._lines = FunctionLines(question.records)
        self._edits: list[FileVersionChange] = []
        self._hunks: dict[BlobPair, tuple[Hunk, ...]] = {}
        self._versions_found: dict[bytes, FileVersion | None] = {}
        self._counts: dict[FunctionLocation, ChangeCount] = {}
        self.is_cut = False
        self.has_unknown_ends = False
        """Whether the end of a function was unknown, because `symbols` has no results for its file."""

    def count(self, places: Iterable[FunctionLocation]) -> dict[FunctionLocation, ChangeCount]:
        """Return for each function the number of commits that changed it, and whether the number is exact.

        If the time limit for git was reached, `is_cut` of this object becomes true. Raises GitError and StoreCorrupt.
        """
        uncounted = [location for location in places if location not in self._counts]
        paths = dict.fromkeys(location.path for location in uncounted)
        self._find_versions(
            [path for path in paths if path in self._changed_paths and path not in self._versions_found]
        )
        versions: dict[FunctionLocation, tuple[FileVersion, LineRange]] = {}
        functions: dict[FileVersion, list[LineRange]] = {}
        for location in uncounted:
            # If no commit changed the path, the count is 0. It is exact only if the history is complete.
            self._counts[location] = ChangeCount(
                0, location.path not in self._changed_paths and self._history.is_complete
            )
            if location.path not in self._changed_paths:
                continue
            version, end = self._versions_found[location.path], self._lines.function_end(location)
            self.has_unknown_ends |= end is None
            if version is not None and end is not None:
                versions[location] = version, LineRange(location.line, end)
                functions.setdefault(version, []).append(versions[location][1])
        if functions:
            edits = CommitChanges(b"", (), tuple(self._edits))
            counts, is_cut = self._history.count_changes(functions, edits, self._hunks)
            self.is_cut |= is_cut
            self._counts |= {location: counts[key] for location, key in versions.items()}
        return self._counts

    def save(self) -> None:
        """Save the history that was read for later queries."""
        self._history.save()

    @cached_property
    def _new_versions(self) -> frozenset[FileVersion]:
        return frozenset(change.new for commit in self._history.commits for change in commit.changes)

    @cached_property
    def _changed_paths(self) -> frozenset[bytes]:
        return frozenset(version.path for version in self._new_versions)

    def _find_versions(self, paths: Collection[bytes]) -> None:
        """Find for each file the version in the history that has the file's content.

        For a file with uncommitted changes, find its version in the newest commit. The version is None if the content
        of the file is missing.
        """
        edited: dict[bytes, bytes] = {}
        for path in paths:
            content = self._read_content(path)
            self._versions_found[path] = None
            if content is None:
                continue
            # git may have converted line ends when it wrote the file.
            for variant in (content, content.replace(b"\r\n", b"\n")):
                version = FileVersion(path, blob_hash_prefix(variant, self._history.commit))
                if version in self._new_versions:
                    self._versions_found[path] = version
                    break
            else:
                edited[path] = variant
        for path, committed in self._history.read_committed(edited).items():
            version = FileVersion(path, blob_hash_prefix(edited[path], self._history.commit))
            old = FileVersion(path, blob_hash_prefix(committed, self._history.commit))
            self._versions_found[path] = version
            if old != version:
                self._edits.append(FileVersionChange(version, (old,)))
                self._hunks[old.blob, version.blob] = compare_lines(committed, edited[path])

    def _read_content(self, path: bytes) -> bytes | None:
        entry = self._question.records.snapshot.entry(path)
        try:
            return None if entry is None else self._question.records.read_object(entry)
        except CodebatchError:
            return None


def compare_lines(old: bytes, new: bytes) -> tuple[Hunk, ...]:
    """Return the hunks in which two file contents differ."""
    before, after = old.split(b"\n"), new.split(b"\n")
    shared_length = min(len(before), len(after))
    first = next((offset for offset in range(shared_length) if before[offset] != after[offset]), shared_length)
    last = next(
        (offset for offset in range(shared_length - first) if before[-1 - offset] != after[-1 - offset]),
        shared_length - first,
    )
    old_middle, new_middle = before[first : len(before) - last], after[first : len(after) - last]
    if max(len(old_middle), len(new_middle)) > _COMPARED_LINES_MAX:
        return (Hunk(first + 1, first + 1 + len(old_middle), first + 1, first + 1 + len(new_middle)),)
    opcodes = difflib.SequenceMatcher(None, old_middle, new_middle, autojunk=False).get_opcodes()
    start = first + 1
    return tuple(
        Hunk(start + old_start, start + old_end, start + new_start, start + new_end)
        for tag, old_start, old_end, new_start, new_end in opcodes
        if tag != "equal"
    )
