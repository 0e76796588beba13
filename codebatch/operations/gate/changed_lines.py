"""The lines that the change under review added or modified.

They are needed if the batch to compare with is older than the commit at which the change begins. Findings in other
lines are not part of the change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from codebatch.compare.conditions import EXPIRING
from codebatch.compare.differences import Change
from codebatch.compare.matching.lines import NO_LINE
from codebatch.compare.states import REGRESSION_STATES
from codebatch.errors import BatchIncomplete
from codebatch.git.ancestry import Repository
from codebatch.git.changed_lines import touched_lines
from codebatch.git.repository import GitError
from codebatch.model.record import Diagnostic
from codebatch.operations.comparison.comparison import Comparison
from codebatch.operations.history.checkouts import find_source_repository
from codebatch.store.batches.batch_directory import BatchDir


class TouchedLines(NamedTuple):
    """The lines that a change added or modified: ranges of line numbers from 1, by path."""

    lines: Mapping[bytes, list[range]]

    def has(self, diagnostic: Diagnostic) -> bool:
        """Return whether the range of a finding includes at least one of these lines."""
        first, last = diagnostic.line, max(diagnostic.end_line or diagnostic.line, diagnostic.line)
        return any(lines.start <= last and first < lines.stop for lines in self.lines.get(diagnostic.path_bytes, ()))


def touched_since(head: BatchDir, commit: str | None) -> TouchedLines | None:
    """Return the lines of a batch that differ from a commit.

    None means that all lines count as touched. It is returned if `commit` is None. Raises BatchIncomplete if git cannot
    determine the lines.
    """
    if commit is None:
        return None
    repository_and_directory = find_source_repository(head.about.sources)
    try:
        if repository_and_directory is None:
            raise GitError("the directory is no longer in a git repository")
        return TouchedLines(
            touched_lines(
                Repository(*repository_and_directory), commit, head.about.commit if head.about.is_clean else None
            )
        )
    except GitError as error:
        message = f"cannot tell which lines changed since commit {commit[:12]}: {error}"
        raise BatchIncomplete(message, hint="give a base: codebatch check BASE") from error


class ChangeFilter:
    """A filter for changes. It passes changes that may be part of the change under review, and counts all others."""

    def __init__(self, comparison: Comparison, touched: TouchedLines | None, *, changed_lines_only: bool) -> None:
        self.not_of_change = 0
        self.on_other_lines = 0
        self._comparison = comparison
        self._touched = touched
        self._changed_lines_only = changed_lines_only

    def __call__(self, change: Change) -> bool:
        if change.state not in REGRESSION_STATES or not isinstance(change.new, Diagnostic):
            return True
        if change.new.code == EXPIRING:
            return False
        if self._touched is not None and not self._touched.has(change.new):
            self.not_of_change += 1
            return False
        if self._changed_lines_only and not self._is_changed(change.new):
            self.on_other_lines += 1
            return False
        return True

    def _is_changed(self, diagnostic: Diagnostic) -> bool:
        lines = self._comparison.lines(diagnostic.path_bytes)
        last = max(diagnostic.end_line or diagnostic.line, diagnostic.line)
        return lines is None or any(
            line > len(lines) or lines[line - 1] == NO_LINE for line in range(max(diagnostic.line, 1), last + 1)
        )
