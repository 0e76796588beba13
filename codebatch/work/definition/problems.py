"""Errors in work files. They are collected, so that all of them are reported at once."""

from __future__ import annotations

from collections.abc import Callable

from codebatch.errors import InvalidWork

_PROBLEMS_SHOWN_MAX = 20


class DefinitionProblems:
    """The errors found so far, in file order, without repetitions."""

    def __init__(self) -> None:
        self.count = 0
        self._messages: set[str] = set()
        self._shown: list[tuple[str, str | None]] = []

    def add(self, message: str, hint: str | Callable[[], str | None] | None = None) -> None:
        """Add an error. If the message was already added, it is only counted.

        If `hint` is a function, it is called only if the error will be shown.
        """
        self.count += 1
        if message in self._messages:
            return
        self._messages.add(message)
        if len(self._shown) < _PROBLEMS_SHOWN_MAX:
            self._shown.append((message, hint() if callable(hint) else hint))

    def raise_any(self) -> None:
        """Raise InvalidWork with all errors, if there are any."""
        if self.count:
            raise InvalidWork(self._shown, len(self._messages))
