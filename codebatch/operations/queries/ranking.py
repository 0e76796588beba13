"""By what `top` can rank, besides the fields of records."""

from __future__ import annotations

from typing import Literal

Ranking = Literal["kind", "code", "severity", "lang", "path", "file", "dir"]
METRIC = "metric:"
"""Before the name of a metric, to rank by it."""
