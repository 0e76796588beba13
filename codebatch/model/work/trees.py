"""The trees in which isolated commands of a work batch work (SPEC.md "Trees")."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from codebatch.model.digest import Digest
from codebatch.model.entry import SnapshotId, is_safe_path
from codebatch.model.work.command import Isolation

_COMMIT_PATTERN = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")

TreesKept = Literal["failed", "none"]
"""The trees that are kept after their attempt: those of attempts that failed or asked a question, or none."""


class TreeSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The settings of the trees of a work batch.

    - `repository`: the absolute path of the git work tree that contains the root of the batch, or empty. Trees with
      isolation `worktree` are work trees of this repository.
    - `base`: the commit that these trees start with: HEAD when the batch was made. 40 or 64 hex digits, or empty.
    - `snapshot`: the snapshot of the root, made with the batch, that trees with isolation `copy` start with, or empty.
    - `directory`: the absolute path of the directory that contains the trees of all batches.
    - `links`: paths relative to the root. Each tree has a symbolic link to the user's own directory there.
    - `keep`: the trees that are kept after their attempt.
    """

    repository: bytes = b""
    base: str = ""
    snapshot: SnapshotId = SnapshotId("")
    directory: bytes
    links: tuple[bytes, ...] = ()
    keep: TreesKept = "failed"

    def supports(self, isolation: Isolation) -> bool:
        """Return whether the batch can make trees with an isolation: it has the commit or the snapshot for them."""
        return bool(self.base if isolation == "worktree" else self.snapshot)

    @property
    def is_valid(self) -> bool:
        """Whether the paths and the commit have the right form."""
        return (
            self.directory.startswith(b"/")
            and all(map(is_safe_path, self.links))
            and (not self.base or _COMMIT_PATTERN.match(self.base) is not None)
            and self.repository.startswith(b"/") == bool(self.base)
        )


class NeededChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The change set of the last attempt of a task that another task needs, directly or not."""

    task: str
    changes: Digest


class TreeInput(msgspec.Struct, frozen=True, kw_only=True):
    """The input of the tree of an attempt.

    - `needed`: the change sets that are applied to a new tree, in the order of the task list.
    - `continued_round`: the round of the attempt that asked a question. Its tree is continued. 0: a new tree is made.
    - `previous_round`: the round of the failed attempt before this one, whose tree may have been kept, or 0.
    """

    needed: tuple[NeededChanges, ...] = ()
    continued_round: int = 0
    previous_round: int = 0
