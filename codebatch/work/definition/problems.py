"""Errors in work files, collected so that all are reported at once."""

from __future__ import annotations

from collections.abc import Callable

from codebatch.errors import InvalidWork

_PROBLEMS_SHOWN_MAX = 20


class Problems:
    """The distinct errors found so far, in file order."""

    def __init__(self) -> None:
        self.count = 0
        self._seen: set[str] = set()
        self._shown: list[tuple[str, str | None]] = []

    def add(self, message: str, hint: str | Callable[[], str | None] | None = None) -> None:
        """Add an error. A repeated message is counted and not listed again.

        A callable hint is computed only if the error is listed.
        """
        self.count += 1
        if message in self._seen:
            return
        self._seen.add(message)
        if len(self._shown) < _PROBLEMS_SHOWN_MAX:
            self._shown.append((message, hint() if callable(hint) else hint))

    def raise_any(self) -> None:
        """Raise InvalidWork if there are errors."""
        if self.count:
            raise InvalidWork(self._shown, len(self._seen))
