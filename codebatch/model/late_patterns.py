"""Regular expressions that are compiled when they are first used: of those that modules name, a process uses few."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property


class LatePattern:
    """What `re.compile` makes of `pattern`, made when it is first asked. As fast as that from then on."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern = pattern
        self._flags = flags

    @cached_property
    def match(self) -> Callable[[str], re.Match[str] | None]:
        """As of `re.Pattern`."""
        return self._compiled.match

    @cached_property
    def search(self) -> Callable[[str], re.Match[str] | None]:
        """As of `re.Pattern`."""
        return self._compiled.search

    @cached_property
    def fullmatch(self) -> Callable[[str], re.Match[str] | None]:
        """As of `re.Pattern`."""
        return self._compiled.fullmatch

    @cached_property
    def split(self) -> Callable[[str], list[str]]:
        """As of `re.Pattern`; its patterns have no groups."""
        return self._compiled.split

    def sub(self, by: str | Callable[[re.Match[str]], str], text: str, count: int = 0) -> str:
        """As of `re.Pattern`."""
        return self._compiled.sub(by, text, count)

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, self._flags)
