"""The rankings of `codebatch top` that are not names of record fields."""

from __future__ import annotations

from typing import Literal

RankingField = Literal["kind", "code", "severity", "lang", "path", "file", "dir"]
METRIC_PREFIX = "metric:"
"""The prefix of a metric name in a ranking."""
