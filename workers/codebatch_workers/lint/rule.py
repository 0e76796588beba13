"""Rules that are not ruff's, and their findings as byte offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from codebatch.model.record import Severity
from codebatch_workers.syntax.source import SourceFile

# Start offset, end offset, message.
Finding = tuple[int, int, str]


class TextRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule: its code, its severity, whether it is on by default, and the function that finds violations.

    A file without the bytes `needle` has no violations, so `find` is not called for it. This test is fast and excludes
    most files.
    """

    code: str
    severity: Severity
    summary: str
    find: Callable[[SourceFile], Iterator[Finding]]
    needle: bytes = b""
    is_on: bool = True
    is_style: bool = False
