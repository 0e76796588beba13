"""The rankings of `codebatch top` that are not names of record fields."""

from __future__ import annotations

from typing import Literal

Ranking = Literal["kind", "code", "severity", "lang", "path", "file", "dir"]
METRIC = "metric:"
"""The prefix of a metric name in a ranking."""
