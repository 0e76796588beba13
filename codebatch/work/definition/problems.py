"""What is wrong with work files: all of it is told at once."""

from __future__ import annotations

from collections.abc import Callable

from codebatch.errors import InvalidWork

PROBLEMS_TOLD_MAX = 20


class Problems:
    """What was found so far, in the order of the files."""

    def __init__(self) -> None:
        self.count = 0
        self._seen: set[str] = set()
        self._told: list[tuple[str, str | None]] = []

    def add(self, told: str, hint: str | Callable[[], str | None] | None = None) -> None:
        """Another one. A hint that takes long to find is looked for only where it is told; what is the same is once."""
        self.count += 1
        if told in self._seen:
            return
        self._seen.add(told)
        if len(self._told) < PROBLEMS_TOLD_MAX:
            self._told.append((told, hint() if callable(hint) else hint))

    def raise_any(self) -> None:
        """Raises InvalidWork where there are some."""
        if self.count:
            raise InvalidWork(self._told, len(self._seen))
