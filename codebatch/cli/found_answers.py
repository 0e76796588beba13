"""What `findings`, `hotspots` and `duplicates` say under `--json`. The commands themselves do without."""

from __future__ import annotations

from codebatch.application.copies import DuplicateBlocks
from codebatch.application.findings import Findings
from codebatch.application.hotspots import HotspotBy, Hotspots


class FindingsAnswer(Findings, frozen=True, kw_only=True):
    """`findings`; how true it is as in `summary`."""

    batch_id: str
    project: str
    complete: bool
    percent: float
    stale: bool | None
    paths: tuple[str, ...]


class HotspotsAnswer(Hotspots, frozen=True, kw_only=True):
    """`hotspots`: of which batch, and by what they are ranked; how true it is as in `summary`."""

    batch_id: str
    by: HotspotBy
    project: str
    complete: bool
    percent: float
    stale: bool | None
    paths: tuple[str, ...]


class CopiesAnswer(DuplicateBlocks, frozen=True, kw_only=True):
    """`duplicates`, of which batch; how true it is as in `summary`."""

    batch_id: str
    project: str
    complete: bool
    percent: float
    stale: bool | None
    paths: tuple[str, ...]
