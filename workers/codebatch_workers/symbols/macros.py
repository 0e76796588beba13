"""Macros of C and C++, found by a search in the text. The grammars have no preprocessor, so they misparse macro bodies.

A directive ends at the first line end that is neither after a backslash nor in a comment. The nodes that a tree has in
a macro body are unreliable. So `outline` drops definitions in macro bodies, and finds calls in them by their text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
from tree_sitter import Node

# `re` searches for literal text fast, so the pattern begins with the literal `define`. The text before it is checked
# for each match.
_MACRO_DEFINITION = re.compile(
    rb"define[ \t]+([A-Za-z_$\x80-\xff][\w$\x80-\xff]*)(\([^()\n]*\))?[^\n\\/\"]*"
    rb"(?:(?:\\(?:\r\n|.)|/\*.{0,2000}?\*/|//[^\n\\]*|\"(?:[^\"\\\n]|\\.)*\"|[/\"])[^\n\\/\"]*)*",
    re.DOTALL,
)
# Strings, comments, numbers and words in the body of a macro. Only words have the group `name`. Because `#x` turns the
# argument x into a string, `x` is a word there, too.
_MACRO_WORD = re.compile(
    rb"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|/\*.*?\*/|//[^\n]*|(?<![\w$.])[0-9][\w.]*|"
    rb"(?P<name>[A-Za-z_$\x80-\xff][\w$\x80-\xff]*)(?P<call>(?:[ \t]|\\\r?\n)*\()?",
    re.DOTALL,
)
_CALL_AFTER_BRACKET = re.compile(rb"[ \t]*\)[ \t]*\(")
# The part of a chain of names before the last name: `a.b->` in `a.b->c`, `std::` in `std::move`.
_NAME_CHAIN = re.compile(rb"(?:[\w$\x80-\xff]+(?:::|\.|->))+\Z")
_CHAIN_BYTES_MAX = 200
_MACRO_PARAMETER = re.compile(rb"[\w$\x80-\xff]+|\.\.\.")


class MacroWord(NamedTuple):
    """A name in the body of a macro. `is_called` is true if `(` follows it, also after brackets: `(f)(x)`."""

    start: int
    end: int
    is_called: bool


class MacroDefinition(msgspec.Struct, frozen=True):
    """A `#define`, from its name to the end of its last line. `parameters` is None for an object-like macro."""

    start: int
    name_end: int
    end: int
    parameters: list[str] | None

    def iter_words(self, utf8: bytes) -> Iterator[MacroWord]:
        """Yield the names in the parameter list and the body, in text order."""
        for match in _MACRO_WORD.finditer(utf8, self.name_end, self.end):
            if match["name"] is not None:
                start, end = match.span("name")
                is_called = match["call"] is not None or (
                    utf8.startswith(b"(", start - 1) and _CALL_AFTER_BRACKET.match(utf8, end) is not None
                )
                yield MacroWord(start, end, is_called)

    def iter_calls(self, utf8: bytes, reserved: frozenset[bytes]) -> Iterator[tuple[int, str]]:
        """Yield the end offset and the chain of names of each call in the body.

        Calls of parameters and of reserved words are left out.
        """
        if utf8.find(b"(", self.name_end + 1, self.end) < 0:
            return
        names = {name.encode() for name in self.parameters or ()} | reserved
        for word in self.iter_words(utf8):
            if word.is_called and utf8[word.start : word.end] not in names:
                chain = _NAME_CHAIN.search(utf8, max(self.name_end, word.start - _CHAIN_BYTES_MAX), word.start)
                start = word.start if chain is None else chain.start()
                yield word.end, utf8[start : word.end].decode("utf-8", "replace")


def find_macros(utf8: bytes, comments: Sequence[Node]) -> list[MacroDefinition]:
    """Return the macros that a text defines outside of comments, in text order."""
    if b"define" not in utf8:
        return []
    starts = [node.start_byte for node in comments]
    definitions = []
    for match in _MACRO_DEFINITION.finditer(utf8):
        start = match.start()
        if utf8[utf8.rfind(b"\n", 0, start) + 1 : start].split() != [b"#"]:
            continue
        before = bisect_right(starts, match.start(1)) - 1
        if before < 0 or comments[before].end_byte <= match.start(1):
            parameters = match[2]
            definitions.append(
                MacroDefinition(
                    match.start(1),
                    match.end(1),
                    match.end(),
                    None if parameters is None else [part.decode() for part in _MACRO_PARAMETER.findall(parameters)],
                )
            )
    return definitions


class MacroBodies:
    """The ranges of macro bodies: from the end of each name to the end of the macro.

    `offset in bodies` tests an offset.
    """

    def __init__(self, definitions: Sequence[MacroDefinition]) -> None:
        self._starts = [macro.name_end for macro in definitions]
        self._ends = [macro.end for macro in definitions]

    def __bool__(self) -> bool:
        return bool(self._starts)

    def __contains__(self, offset: int) -> bool:
        index = bisect_right(self._starts, offset) - 1
        return index >= 0 and offset < self._ends[index]
