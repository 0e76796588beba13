"""Non-production files: tests, and vendored or generated code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

SecondaryCategory = Literal["test", "foreign"]
"""The category of a non-production file.

- `test`: tests, their data, examples, documentation.
- `foreign`: vendored, generated or minified files, and templates.
"""


class SecondaryFiles:
    """The non-production files of a batch."""

    def __init__(self, by_path: Mapping[bytes, SecondaryCategory]) -> None:
        self._by_path = by_path

    def category_of(self, path: bytes) -> SecondaryCategory | None:
        """Return the category of a non-production file, or None for production files."""
        return self._by_path.get(path)
