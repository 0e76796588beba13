"""Regular expressions that are compiled on first use, because a process uses few of all patterns in modules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import AnyStr, Generic


class LatePattern(Generic[AnyStr]):
    """A regular expression compiled on first use, then as fast as the result of `re.compile`."""

    def __init__(self, pattern: AnyStr, flags: int = 0) -> None:
        self.pattern: AnyStr = pattern
        self._flags = flags

    @cached_property
    def match(self) -> Callable[..., re.Match[AnyStr] | None]:
        """Method of `re.Pattern`."""
        return self._compiled.match

    @cached_property
    def search(self) -> Callable[..., re.Match[AnyStr] | None]:
        """Method of `re.Pattern`."""
        return self._compiled.search

    @cached_property
    def fullmatch(self) -> Callable[..., re.Match[AnyStr] | None]:
        """Method of `re.Pattern`."""
        return self._compiled.fullmatch

    @cached_property
    def findall(self) -> Callable[[AnyStr], list[AnyStr]]:
        """Method of `re.Pattern`, for patterns with at most one group."""
        return self._compiled.findall

    @cached_property
    def finditer(self) -> Callable[..., Iterator[re.Match[AnyStr]]]:
        """Method of `re.Pattern`."""
        return self._compiled.finditer

    @cached_property
    def split(self) -> Callable[[AnyStr], list[AnyStr]]:
        """Method of `re.Pattern`, for patterns without groups."""
        return self._compiled.split

    def sub(self, by: AnyStr | Callable[[re.Match[AnyStr]], AnyStr], text: AnyStr, count: int = 0) -> AnyStr:
        """Method of `re.Pattern`."""
        return self._compiled.sub(by, text, count)

    @cached_property
    def _compiled(self) -> re.Pattern[AnyStr]:
        return re.compile(self.pattern, self._flags)
