"""Where a name is called and nothing else, as records tell: so that a file need not be parsed to say so again.

A record of a call has the line where the name stands, what is called as it is written, and the scope. Where a file
holds the name at these places alone, and its text says nothing else, that is all that its tree would say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from codebatch_workers.syntax.names import RESERVED
from codebatch_workers.syntax.source import SourceFile

_LANGUAGES = frozenset({"c", "cpp", "go", "java", "python"})
"""In which nothing is called inside of what imports."""
_CALLED = re.compile(rb"[ \t]*\(")
_BEGINS = re.compile(rb"[A-Za-z_\x80-\xff]")
# Behind it a chain goes on, which does not begin there.
_GOES_ON = re.compile(rb"[\w$.:>)\]}\x80-\xff-]")
# A line that goes on within a name, which text alone does not show.
_SPLIT_NAME = re.compile(rb"\w\\\r?\n\w")


class Reference(NamedTuple):
    """Where a name stands, in bytes, and as what."""

    start: int
    end: int
    role: str
    scope: str


def called_alone(
    file: SourceFile, spans: Sequence[tuple[int, int]], calls: Sequence[tuple[int, str, str]]
) -> list[Reference] | None:
    """The places of a name, all of them calls; None where only the tree can tell.

    `spans` are where the name stands in the text, `calls` the line, target and source of each call of it. The file
    defines nothing of that name.
    """
    if file.language not in _LANGUAGES or len(spans) != len(calls) or _SPLIT_NAME.search(file.utf8):
        return None
    if file.utf8[slice(*spans[0])] in (RESERVED.get(file.language) or ()):
        return None
    found: list[Reference] = []
    before = (0, "", "")
    for (start, end), call in zip(spans, sorted(calls), strict=True):
        line, target, source = call
        is_told_apart = line != before[0] or call == before
        if not is_told_apart or file.position(start)[0] != line or not _is_written(file.utf8, end, target.encode()):
            return None
        found.append(Reference(start, end, "call", source))
        before = call
    return found


def _is_written(utf8: bytes, end: int, target: bytes) -> bool:
    """Whether what is called is a chain of names that ends there, as it stands, with nothing before it."""
    start = end - len(target)
    return (
        start >= 0
        and utf8[start:end] == target
        and _BEGINS.match(target) is not None
        and _CALLED.match(utf8, end) is not None
        and _GOES_ON.match(utf8, max(start - 1, 0), start) is None
    )
