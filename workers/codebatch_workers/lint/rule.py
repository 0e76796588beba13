"""A rule that is not ruff's: what it says of a file, by byte offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from codebatch.model.record import Severity
from codebatch_workers.syntax.source import SourceFile

# From, to, message.
Finding = tuple[int, int, str]


class TextRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule: what it is called, how bad a finding is, whether it runs unless told otherwise, and what it does.

    A file in which `needle` is not has no finding, and is not given to `find`: most have none, and that is soon known.
    """

    code: str
    severity: Severity
    summary: str
    find: Callable[[SourceFile], Iterator[Finding]]
    needle: bytes = b""
    is_on: bool = True
    is_style: bool = False
