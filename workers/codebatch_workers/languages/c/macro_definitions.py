"""Macros of C and C++, found by a search in the text. The grammars have no preprocessor, so they misparse macro bodies.

A directive ends at the first line end that is neither after a backslash nor in a comment.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from codebatch_workers.symbols.macros import MacroDefinition, MacroWord

# `re` searches for literal text fast, so the pattern begins with the literal `define`. The text before it is checked
# for each match.
_DEFINITION = re.compile(
    rb"define[ \t]+([A-Za-z_$\x80-\xff][\w$\x80-\xff]*)(\([^()\n]*\))?[^\n\\/\"]*"
    rb"(?:(?:\\(?:\r\n|.)|/\*.{0,2000}?\*/|//[^\n\\]*|\"(?:[^\"\\\n]|\\.)*\"|[/\"])[^\n\\/\"]*)*",
    re.DOTALL,
)
# Strings, comments, numbers and words in the body of a macro. Only words have the group `name`. Because `#x` turns the
# argument x into a string, `x` is a word there, too.
_WORD = re.compile(
    rb"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|/\*.*?\*/|//[^\n]*|(?<![\w$.])[0-9][\w.]*|"
    rb"(?P<name>[A-Za-z_$\x80-\xff][\w$\x80-\xff]*)(?P<call>(?:[ \t]|\\\r?\n)*\()?",
    re.DOTALL,
)
_CALL_AFTER_BRACKET = re.compile(rb"[ \t]*\)[ \t]*\(")
# The part of a chain of names before the last name: `a.b->` in `a.b->c`, `std::` in `std::move`.
_NAME_CHAIN = re.compile(rb"(?:[\w$\x80-\xff]+(?:::|\.|->))+\Z")
_CHAIN_BYTES_MAX = 200
_PARAMETER = re.compile(rb"[\w$\x80-\xff]+|\.\.\.")
_NO_FUNCTIONS = frozenset({b"defined", b"__attribute__", b"_Pragma"})


def find_macros(utf8: bytes, comments: Sequence[Node]) -> list[MacroDefinition]:
    """Return the macros that a text defines outside of comments, in text order."""
    if b"define" not in utf8:
        return []
    starts = [node.start_byte for node in comments]
    definitions = []
    for match in _DEFINITION.finditer(utf8):
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
                    None if parameters is None else [part.decode() for part in _PARAMETER.findall(parameters)],
                )
            )
    return definitions


def iter_words(macro: MacroDefinition, utf8: bytes) -> Iterator[MacroWord]:
    """Yield the names in the parameter list and the body of a macro, in text order."""
    for match in _WORD.finditer(utf8, macro.name_end, macro.end):
        if match["name"] is not None:
            start, end = match.span("name")
            is_called = match["call"] is not None or (
                utf8.startswith(b"(", start - 1) and _CALL_AFTER_BRACKET.match(utf8, end) is not None
            )
            yield MacroWord(start, end, is_called)


def iter_calls(macro: MacroDefinition, utf8: bytes, reserved: frozenset[bytes]) -> Iterator[tuple[int, str]]:
    """Yield the end offset and the chain of names of each call in the body of a macro.

    Calls of parameters and of reserved words are left out.
    """
    if utf8.find(b"(", macro.name_end + 1, macro.end) < 0:
        return
    names = {name.encode() for name in macro.parameters or ()} | reserved | _NO_FUNCTIONS
    for word in iter_words(macro, utf8):
        if word.is_called and utf8[word.start : word.end] not in names:
            chain = _NAME_CHAIN.search(utf8, max(macro.name_end, word.start - _CHAIN_BYTES_MAX), word.start)
            start = word.start if chain is None else chain.start()
            yield word.end, utf8[start : word.end].decode("utf-8", "replace")
