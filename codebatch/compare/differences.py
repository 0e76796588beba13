"""What a comparison tells: one row for each finding, metric, symbol, edge, group of copies or file that differs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from codebatch.compare.findings import Pass
from codebatch.compare.states import State
from codebatch.model.record import Record


class Difference(NamedTuple):
    """What became of one thing: `old` and `new` are its records, None on the side where it is not.

    `by` is the pass that paired a finding, `reason` why it is not comparable; None where there is none.
    """

    state: State
    old: Record | None
    new: Record | None
    by: Pass | None = None
    reason: str | None = None


# How many of each state there are, `unchanged` among them.
Counts = Mapping[State, int]
