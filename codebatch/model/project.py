"""The project that a command acts on if its user names no batch: a directory tree (SPEC.md "Projects")."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import msgspec

ProjectKind = Literal["git", "ignored", "settings", "store", "unmarked", "removed"]
"""The reason why a directory is the root of a project.

- `git`: it is a git work tree.
- `ignored`: it is a git work tree that ignores `start`, the directory in which the search began.
- `settings`, `store`: it contains settings or a store.
- `unmarked`: the search found none of these, so the root is `start` itself.
- `removed`: the current directory no longer exists, so no batch belongs to it.
"""


class ProjectRoot(msgspec.Struct, frozen=True):
    """The root directory of a project, and `start`, the directory in it at which the search began.

    Both are absolute paths without symbolic links, like the sources of batches. `last` is the directory at which the
    search ended, if it is not the root.
    """

    root: bytes
    start: bytes
    kind: ProjectKind
    last: bytes = b""

    def root_among(self, known: Collection[bytes]) -> bytes:
        """Return the nearest of `start` and its ancestors that is in `known`. If there is none, return the root.

        Outside git, a directory that was analysed before is a project even if it contains no marker. In a git work tree
        the result is always the root.
        """
        directory = self.root if self.kind == "git" else self.start
        while directory not in known:
            if directory == (self.last or self.root):
                return self.root
            directory = directory.rpartition(b"/")[0] or b"/"
        return directory

    def holds(self, directory: bytes) -> bool:
        """Return whether an absolute path is the root of the project or below it."""
        return self.kind != "removed" and is_below(directory, self.root)

    def has_source(self, root: bytes) -> bool:
        """Return whether a source tree belongs to the project: its absolute path `root` is the root of the project.

        Outside git, trees below the root, and trees that contain `start`, belong to the project too.
        """
        return root == self.root or (self.kind != "git" and (self.holds(root) or is_below(self.start, root)))


REMOVED_PROJECT = ProjectRoot(b"", b"", "removed")


def is_below(path: bytes, directory: bytes) -> bool:
    """Return whether an absolute path is equal to `directory` or below it."""
    return path == directory or path.startswith(directory.rstrip(b"/") + b"/")
