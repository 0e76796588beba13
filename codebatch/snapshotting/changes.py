"""The differences between a source tree and a snapshot of this tree. staleness.py computes them."""

from __future__ import annotations

import msgspec

from codebatch.model.entry import SnapshotId


class Changes(msgspec.Struct, frozen=True):
    """Differences between a source tree and a snapshot of it.

    - `paths`: the first paths that differ.
    - `is_cut`: the comparison stopped at a limit, so more paths may differ.
    - `frozen_since`: the ID of a newer snapshot that equals the present tree, or None.
    - `include`, `exclude`: the patterns that selected the files of the snapshot.
    """

    paths: tuple[bytes, ...]
    is_cut: bool
    frozen_since: SnapshotId | None
    include: tuple[str, ...]
    exclude: tuple[str, ...]

    @property
    def is_stale(self) -> bool | None:
        """True if the tree has changed, False if it has not, or None if unknown."""
        return True if self.paths else None if self.is_cut else self.frozen_since is not None
