"""Details of a definition: parameters, decorators, visibility.

A decorator or keyword belongs to the next name after it. Captures:

    parameter               a parameter of the enclosing function
    decorator, decorated    a decorator or annotation, as written
    visibility              a keyword for the visibility of the next name
    access                  `public:` in C++, for all following members of the class
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from tree_sitter import Node

from codebatch.model.record import Visibility
from codebatch_workers.symbols.language_symbols import ParameterRules

# Longer text is a pattern or data, not a name.
_TEXT_BYTES_MAX = 128

_LAST_NAME = re.compile(rb"([\w$\x80-\xff]+|\.\.\.)(?:\s*\[[^\]]*\])*\Z")
_DECORATOR_NAME = re.compile(rb"@?\s*([\w.$\x80-\xff]+)")
_VISIBILITY_BY_KEYWORD: Mapping[bytes, Visibility] = {
    b"public": "public",
    b"pub": "public",
    b"protected": "protected",
    b"private": "private",
    b"fileprivate": "private",
    b"static": "private",
}


def parameter_namer(utf8: bytes, rules: ParameterRules) -> Callable[[Node, int], str]:
    """Return a function that returns the name of a parameter. Its arguments are the node and the offset of the node.

    The name of a destructured parameter is `{` or `[`. If a parameter has no name, its type is returned. If a node is
    not a parameter, the result is empty.
    """
    read_name = rules.read_name or _read_text
    if rules.leading_name is None:
        return lambda node, _: read_name(node, utf8)
    match_at = rules.leading_name.match

    def name_by_text(node: Node, start: int) -> str:
        if (match := match_at(utf8, start)) is None:
            return read_name(node, utf8)
        return match[match.lastindex or 0].decode("utf-8", "replace")

    return name_by_text


def _read_text(node: Node, utf8: bytes) -> str:
    return declaration_text(node, utf8).decode("utf-8", "replace")


def declaration_text(node: Node, utf8: bytes) -> bytes:
    """Return the beginning of the text of a node."""
    return utf8[node.start_byte : node.end_byte][:_TEXT_BYTES_MAX]


def last_name(text: bytes) -> str:
    """Return the name at the end of a declaration, before the dimensions of an array. Without a name, return none."""
    match = _LAST_NAME.search(text)
    return "" if match is None else match[1].decode("utf-8", "replace")


def decorator_names(
    captures: Mapping[str, Sequence[Node]], utf8: bytes, starts: Sequence[int], is_inside: Callable[[int], bool]
) -> dict[int, tuple[str, ...]]:
    """Map the offset of each decorated name to the names of its decorators, outermost first.

    `starts` are the offsets of all names, ascending. `is_inside` returns whether an offset is in a parameter list.
    Decorators of parameters are ignored.
    """
    decorators: dict[int, list[tuple[int, str]]] = {}
    for capture in ("decorator", "decorated"):
        for node in captures.get(capture, ()):
            match = _DECORATOR_NAME.match(declaration_text(node, utf8))
            following = bisect_left(starts, node.end_byte)
            if match is not None and following < len(starts) and not is_inside(node.start_byte):
                name = match[1].decode("utf-8", "replace")
                decorators.setdefault(starts[following], []).append((node.start_byte, name))
    return {start: tuple(name for _, name in sorted(names)) for start, names in decorators.items()}


def keyword_visibilities(
    captures: Mapping[str, Sequence[Node]], utf8: bytes, starts: Sequence[int]
) -> dict[int, Visibility]:
    """Map the offset of a name to its visibility, if a keyword such as `private` precedes the name.

    `starts` are the offsets of all names, ascending.
    """
    visibilities: dict[int, Visibility] = {}
    for node in captures.get("visibility", ()):
        text = utf8[node.start_byte : node.end_byte]
        following = bisect_left(starts, node.end_byte)
        if following < len(starts):
            visibility = _VISIBILITY_BY_KEYWORD.get(text) or ("internal" if text.startswith(b"pub") else None)
            if visibility is not None:
                visibilities[starts[following]] = visibility
    return visibilities


class AccessSections:
    """The access specifiers of C++ (`public:`, `private:`) in each class."""

    def __init__(self, captures: Mapping[str, Sequence[Node]], utf8: bytes, scope_at: Callable[[int], str]) -> None:
        self._specifiers: dict[str, list[tuple[int, Visibility]]] = {}
        for node in captures.get("access", ()):
            text = utf8[node.start_byte : node.end_byte].split(b":")[0].strip()
            if text in _VISIBILITY_BY_KEYWORD:
                self._specifiers.setdefault(scope_at(node.start_byte), []).append(
                    (node.start_byte, _VISIBILITY_BY_KEYWORD[text])
                )

    def __bool__(self) -> bool:
        return bool(self._specifiers)

    def visibility_at(self, scope: str, start: int) -> Visibility | None:
        """Return the visibility that the last specifier before a member sets. If there is no specifier, return None."""
        sections = self._specifiers.get(scope, [])
        before = bisect_right(sections, (start, cast("Visibility", "~")))
        return sections[before - 1][1] if before else None
