"""Composition of changes of one file that tasks made one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from codebatch.model.change import TreeChange


class ChangesNotComposable(ValueError):
    """The error that a change was not made for the result of the change before it."""


def compose_changes(changes: Sequence[TreeChange]) -> TreeChange | None:
    """Return the change that has the effect of all changes, in order. Return None if they undo each other.

    Raises ChangesNotComposable if the changes concern several files, or if a change does not begin with the result of
    the change before it.
    """
    first, last = changes[0], changes[-1]
    for before, after in itertools.pairwise(changes):
        if not follows(before, after):
            raise ChangesNotComposable
    has_mode = first.before is not None and last.after is not None
    if first.before == last.after and (not has_mode or first.was_executable == last.executable):
        return None
    return TreeChange(
        path=first.path,
        kind=first.kind,
        before=first.before,
        after=last.after,
        was_executable=first.was_executable,
        executable=last.executable,
    )


def follows(first: TreeChange, second: TreeChange) -> bool:
    """Return whether the second change was made for the result of the first."""
    if (first.path, first.kind, first.after) != (second.path, second.kind, second.before):
        return False
    return first.after is None or first.executable == second.was_executable
