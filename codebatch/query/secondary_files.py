"""Files that are not what a project is for: tests, and what others or machines wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Apart = Literal["test", "foreign"]
"""`test`: tests, their data, examples, documentation; `foreign`: vendored, generated, minified, or a template."""


class SecondaryFiles:
    """Which files of a batch stand apart."""

    def __init__(self, found: Mapping[bytes, Apart]) -> None:
        self._found = found

    def of(self, path: bytes) -> Apart | None:
        """How a file stands apart; None where it does not."""
        return self._found.get(path)
