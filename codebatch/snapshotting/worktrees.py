"""Linked git work trees inside the work tree of their own repository.

They are other checkouts of the same project, so the snapshot excludes them.
"""

from __future__ import annotations

import os

from codebatch.git.worktrees import is_linked_work_tree
from codebatch.model.entry import display_path
from codebatch.snapshotting.walk import work_tree_around


class LinkedWorktrees:
    """The linked work trees found below an absolute base directory. Paths in arguments are relative to this base."""

    def __init__(self, base: bytes) -> None:
        self._base = base
        self.excluded: set[bytes] = set()
        """The paths of the linked work trees that were found."""

    def has(self, path: bytes) -> bool:
        """Return whether a directory is a linked work tree of the repository whose work tree contains the directory."""
        target = os.path.join(self._base, path)
        is_linked = is_linked_work_tree(target, work_tree_around(os.path.dirname(target)))
        if is_linked:
            self.excluded.add(path)
        return is_linked

    def exclude_from_listing(self, listing: bytes, raw: bytes) -> bytes:
        """Return git's list of a directory without the linked work trees in this directory.

        Names in the list end with NUL.
        """
        if b"/\0" not in raw:
            return raw
        prefix = listing + b"/" if listing else b""
        names = raw.split(b"\0")
        return b"\0".join(name for name in names if not (name.endswith(b"/") and self.has(prefix + name[:-1])))

    @property
    def exclusion_notes(self) -> list[str]:
        """A note for users about the linked work trees that were excluded. Empty if there are none."""
        first, *other_paths = sorted(self.excluded) or [b""]
        more = f" and {len(other_paths):,} more" if other_paths else ""
        return [f"linked work trees of this repository are excluded: {display_path(first)}{more}"] if first else []
