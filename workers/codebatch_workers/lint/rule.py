"""Rules of lint other than ruff's. Their findings have byte offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from codebatch.model.record import Severity
from codebatch_workers.syntax.source import SourceFile

# Start offset, end offset, message.
RuleMatch = tuple[int, int, str]


class TextRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule: its code, its severity, whether it is on by default, and the function that finds violations.

    A file that does not contain the bytes `needle` has no violations, so `find` is not called for this file. The search
    for `needle` is fast, and excludes most files.
    """

    code: str
    severity: Severity
    summary: str
    find: Callable[[SourceFile], Iterator[RuleMatch]]
    needle: bytes = b""
    is_on: bool = True
    is_style: bool = False
