"""JSON types of the answers of `findings`, `hotspots` and `duplicates`. The commands do not import this module."""

from __future__ import annotations

from codebatch.operations.hotspots.hotspots import HotspotBy, Hotspots
from codebatch.operations.queries.duplicates import DuplicateBlocks
from codebatch.operations.queries.findings import FindingsByRule


class FindingsAnswer(FindingsByRule, frozen=True, kw_only=True):
    """The answer of `codebatch findings`. `complete`, `percent`, `stale` and `paths` are as in the answer of `codebatch
    summary`.
    """

    batch_id: str
    project: str
    complete: bool
    percent: float
    stale: bool | None
    paths: tuple[str, ...]


class HotspotsAnswer(Hotspots, frozen=True, kw_only=True):
    """The answer of `codebatch hotspots`. `by` is the sort key. `complete`, `percent`, `stale` and `paths` are as in
    the answer of `codebatch summary`.
    """

    batch_id: str
    by: HotspotBy
    project: str
    complete: bool
    percent: float
    stale: bool | None
    paths: tuple[str, ...]


class CopiesAnswer(DuplicateBlocks, frozen=True, kw_only=True):
    """The answer of `codebatch duplicates`. `complete`, `percent`, `stale` and `paths` are as in the answer of
    `codebatch summary`.
    """

    batch_id: str
    project: str
    complete: bool
    percent: float
    stale: bool | None
    paths: tuple[str, ...]
