"""What a comparison tells: one row for each finding, metric, symbol, edge, group of copies or file that differs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from codebatch.compare.findings import Pass
from codebatch.compare.states import State
from codebatch.model.record import Located, Record


class TreeFile(Located, frozen=True, kw_only=True, tag="file"):
    """A file of a snapshot, as it is known without a batch: `object` is the digest of its content."""

    size: int
    executable: bool
    object: str


class Difference(NamedTuple):
    """What became of one thing: `old` and `new` are its records, None on the side where it is not.

    Of a group of copies each is the record of the first that is told; where blocks were split or joined, rows share it.
    `by` is the pass that paired a finding, `reason` why it is not comparable; None where there is none.
    """

    state: State
    old: Record | TreeFile | None
    new: Record | TreeFile | None
    by: Pass | None = None
    reason: str | None = None


# How many of each state there are, `unchanged` among them.
Counts = Mapping[State, int]
