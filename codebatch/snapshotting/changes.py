"""How a tree differs from what was frozen of it (staleness.py finds out)."""

from __future__ import annotations

import msgspec

from codebatch.model.entry import SnapshotId


class Changes(msgspec.Struct, frozen=True):
    """How a tree differs from what was frozen.

    `paths` are the first that differ; `is_cut`: there may be others, for a bound was met. `frozen_since` is another
    snapshot that was taken of it since, from which nothing was found to differ. `include` and `exclude` are the
    patterns that chose its files.
    """

    paths: tuple[bytes, ...]
    is_cut: bool
    frozen_since: SnapshotId | None
    include: tuple[str, ...]
    exclude: tuple[str, ...]

    @property
    def is_stale(self) -> bool | None:
        """Whether the tree is another one; None where that is not known."""
        return True if self.paths else None if self.is_cut else self.frozen_since is not None
