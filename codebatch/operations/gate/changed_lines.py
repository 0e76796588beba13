"""Which lines of a batch its change touched, where it is compared with what was before that change's beginning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from codebatch.errors import BatchIncomplete
from codebatch.git.ancestry import Repository
from codebatch.git.changed_lines import touched_lines
from codebatch.git.repository import GitError
from codebatch.model.record import Diagnostic
from codebatch.operations.history.checkouts import repository_of
from codebatch.store.batches.batches import BatchDir


class TouchedLines(NamedTuple):
    """By path the lines, 1-based, that a change made or changed."""

    lines: Mapping[bytes, list[range]]

    def has(self, found: Diagnostic) -> bool:
        """Whether a finding stands on one of them."""
        first, last = found.line, max(found.end_line or found.line, found.line)
        return any(lines.start <= last and first < lines.stop for lines in self.lines.get(found.path_bytes, ()))


def touched_since(head: BatchDir, commit: str | None) -> TouchedLines | None:
    """The lines of a batch that differ from a commit; None where none is asked for, so that all may.

    Raises BatchIncomplete where git cannot tell.
    """
    if commit is None:
        return None
    found = repository_of(head.about.sources)
    try:
        if found is None:
            raise GitError("the directory is no longer in a git repository")
        return TouchedLines(
            touched_lines(Repository(*found), commit, head.about.commit if head.about.is_clean else None)
        )
    except GitError as error:
        told = f"cannot tell which lines changed since commit {commit[:12]}: {error}"
        raise BatchIncomplete(told, hint="give a base: codebatch check BASE") from error
