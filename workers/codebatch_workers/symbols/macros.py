"""Macros of C and C++, found in the text: a grammar that knows no preprocessor is confused by some of their bodies.

A directive reaches to the first line end that no backslash precedes. What a grammar makes of the lines after the first
is no code of its own: `outline` drops what it finds there.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tree_sitter import Node

# It begins with the word, which is found fast; what stands before that in its line is looked at where there is one.
_DEFINE = re.compile(
    rb"define[ \t]+([A-Za-z_$\x80-\xff][\w$\x80-\xff]*)(\([^()\n]*\))?[^\n\\]*(?:\\(?:\r\n|.)[^\n\\]*)*",
    re.DOTALL,
)
_PARAMETER = re.compile(rb"[\w$\x80-\xff]+|\.\.\.")


class Macro(msgspec.Struct, frozen=True):
    """A `#define`, from its name to the end of its last line; `parameters` is None where it looks like no function."""

    start: int
    name_end: int
    end: int
    parameters: list[str] | None


def macros(utf8: bytes, comments: Sequence[Node]) -> list[Macro]:
    """The macros that a text defines outside of comments, by position."""
    if b"define" not in utf8:
        return []
    starts = [node.start_byte for node in comments]
    found = []
    for match in _DEFINE.finditer(utf8):
        start = match.start()
        if utf8[utf8.rfind(b"\n", 0, start) + 1 : start].split() != [b"#"]:
            continue
        before = bisect_right(starts, match.start(1)) - 1
        if before < 0 or comments[before].end_byte <= match.start(1):
            parameters = match[2]
            found.append(
                Macro(
                    match.start(1),
                    match.end(1),
                    match.end(),
                    None if parameters is None else [part.decode() for part in _PARAMETER.findall(parameters)],
                )
            )
    return found


class Bodies:
    """The lines of macros after their first."""

    def __init__(self, utf8: bytes, found: Sequence[Macro]) -> None:
        spans = [(utf8.find(b"\n", macro.start, macro.end), macro.end) for macro in found]
        spans = [span for span in spans if span[0] >= 0]
        self._starts = [start for start, _ in spans]
        self._ends = [end for _, end in spans]

    def __bool__(self) -> bool:
        return bool(self._starts)

    def __contains__(self, offset: int) -> bool:
        index = bisect_right(self._starts, offset) - 1
        return index >= 0 and offset < self._ends[index]
