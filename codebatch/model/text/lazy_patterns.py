"""Regular expressions that are compiled when they are first used: of those that modules name, a process uses few."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import AnyStr, Generic


class LatePattern(Generic[AnyStr]):
    """What `re.compile` makes of `pattern`, made when it is first asked. As fast as that from then on."""

    def __init__(self, pattern: AnyStr, flags: int = 0) -> None:
        self.pattern: AnyStr = pattern
        self._flags = flags

    @cached_property
    def match(self) -> Callable[..., re.Match[AnyStr] | None]:
        """As of `re.Pattern`."""
        return self._compiled.match

    @cached_property
    def search(self) -> Callable[..., re.Match[AnyStr] | None]:
        """As of `re.Pattern`."""
        return self._compiled.search

    @cached_property
    def fullmatch(self) -> Callable[..., re.Match[AnyStr] | None]:
        """As of `re.Pattern`."""
        return self._compiled.fullmatch

    @cached_property
    def findall(self) -> Callable[[AnyStr], list[AnyStr]]:
        """As of `re.Pattern`, of a pattern with one group or none."""
        return self._compiled.findall

    @cached_property
    def finditer(self) -> Callable[..., Iterator[re.Match[AnyStr]]]:
        """As of `re.Pattern`."""
        return self._compiled.finditer

    @cached_property
    def split(self) -> Callable[[AnyStr], list[AnyStr]]:
        """As of `re.Pattern`; its patterns have no groups."""
        return self._compiled.split

    def sub(self, by: AnyStr | Callable[[re.Match[AnyStr]], AnyStr], text: AnyStr, count: int = 0) -> AnyStr:
        """As of `re.Pattern`."""
        return self._compiled.sub(by, text, count)

    @cached_property
    def _compiled(self) -> re.Pattern[AnyStr]:
        return re.compile(self.pattern, self._flags)
