"""A project: the directory tree that a command acts on where no batch is named (SPEC.md "Projects")."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import msgspec

ProjectKind = Literal["git", "ignored", "settings", "store", "unmarked", "removed"]
"""What makes a directory the root: a git work tree, or one that ignores `start`; settings or a store in it; or that the
search began there. `removed`: the current directory does not exist any more, so no batch is of it.
"""


class ProjectRoot(msgspec.Struct, frozen=True):
    """The top directory of a project, and the directory in it that the search began at.

    Both are absolute paths without symbolic links, as batches record their sources. `last` is the last directory that
    was looked at if it is not the root.
    """

    root: bytes
    start: bytes
    kind: ProjectKind
    last: bytes = b""

    def root_among(self, known: Collection[bytes]) -> bytes:
        """Return the nearest directory in `known` from `start` upwards, else the root; in a git work tree the root.

        Elsewhere a directory that was analysed before is a project, although nothing in it says so.
        """
        directory = self.root if self.kind == "git" else self.start
        while directory not in known:
            if directory == (self.last or self.root):
                return self.root
            directory = directory.rpartition(b"/")[0] or b"/"
        return directory

    def holds(self, directory: bytes) -> bool:
        """Return whether an absolute path is the root or lies below it."""
        return self.kind != "removed" and is_below(directory, self.root)

    def has_source(self, root: bytes) -> bool:
        """Return whether a tree of an absolute path counts as the project's.

        Outside git, directories below the project and those around the user are not told apart from it.
        """
        return root == self.root or (self.kind != "git" and (self.holds(root) or is_below(self.start, root)))


REMOVED = ProjectRoot(b"", b"", "removed")


def is_below(path: bytes, directory: bytes) -> bool:
    """Return whether an absolute path is a directory, or lies below it."""
    return path == directory or path.startswith(directory.rstrip(b"/") + b"/")
