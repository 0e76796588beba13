"""Rows of a report, and whether each reaches its target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from bench.machine import Machine
from bench.measuring import Spread, Usage, ratios, spread

Verdict = Literal["PASS", "over", ""]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The limit of a figure: a maximum, or a minimum if `is_minimum` is set.

    `source` names the document that defines it.
    """

    limit: float
    is_minimum: bool = False
    source: str = "design §12"

    def verdict(self, value: float) -> Verdict:
        """Return whether a value reaches the target."""
        return "PASS" if (value >= self.limit if self.is_minimum else value <= self.limit) else "over"

    def __str__(self) -> str:
        return f"{'≥' if self.is_minimum else '≤'} {self.limit:g}"


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of one side of a pair over all turns."""

    name: str
    wall_s: Spread
    cpu_s: Spread
    peak_bytes: int


class PairRow(msgspec.Struct, frozen=True, kw_only=True, tag="pair"):
    """A comparison of our command with another, turn by turn. The verdict is on the median of the ratios of `by`."""

    scenario: str
    what: str
    corpus: str
    ours: Cost
    theirs: Cost
    wall_ratio: Spread
    cpu_ratio: Spread
    by: Literal["wall", "cpu"]
    target: Target | None
    verdict: Verdict
    note: str = ""


class FigureRow(msgspec.Struct, frozen=True, kw_only=True, tag="figure"):
    """A figure that is not a ratio of two processes.

    `peer` is a comparable value of another program, if there is one.
    """

    scenario: str
    what: str
    corpus: str
    value: Spread
    unit: str
    target: Target | None
    verdict: Verdict
    peer: str = ""
    note: str = ""


class SkippedRow(msgspec.Struct, frozen=True, kw_only=True, tag="skipped"):
    """A comparison that was not measured, and the reason."""

    scenario: str
    what: str
    why: str


Row = PairRow | FigureRow | SkippedRow


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All rows of one call of `python -m bench`."""

    machine: Machine
    runs: int
    rows: list[Row]


def cost(name: str, usages: Sequence[Usage]) -> Cost:
    """Return the cost of a side."""
    return Cost(
        name=name,
        wall_s=spread([usage.wall_s for usage in usages]),
        cpu_s=spread([usage.cpu_s for usage in usages]),
        peak_bytes=max(usage.peak_bytes for usage in usages),
    )


def pair_row(
    scenario: str,
    what: str,
    corpus: str,
    *,
    ours: tuple[str, Sequence[Usage]],
    theirs: tuple[str, Sequence[Usage]],
    by: Literal["wall", "cpu"] = "wall",
    target: Target | None = None,
    note: str = "",
) -> PairRow:
    """Return a row that compares two sides that took turns."""
    wall_ratio = ratios([usage.wall_s for usage in ours[1]], [usage.wall_s for usage in theirs[1]])
    cpu_ratio = ratios([usage.cpu_s for usage in ours[1]], [usage.cpu_s for usage in theirs[1]])
    return PairRow(
        scenario=scenario,
        what=what,
        corpus=corpus,
        ours=cost(*ours),
        theirs=cost(*theirs),
        wall_ratio=wall_ratio,
        cpu_ratio=cpu_ratio,
        by=by,
        target=target,
        verdict=target.verdict((wall_ratio if by == "wall" else cpu_ratio).median) if target else "",
        note=note,
    )


def figure_row(
    scenario: str,
    what: str,
    corpus: str,
    values: Sequence[float],
    unit: str,
    *,
    target: Target | None = None,
    peer: str = "",
    note: str = "",
) -> FigureRow:
    """Return a row for a figure measured once or several times."""
    value = spread(values)
    return FigureRow(
        scenario=scenario,
        what=what,
        corpus=corpus,
        value=value,
        unit=unit,
        target=target,
        verdict=target.verdict(value.median) if target else "",
        peer=peer,
        note=note,
    )
