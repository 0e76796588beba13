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

from codebatch.model.record import SymbolType, Visibility

# Longer text is a pattern or data, not a name.
_TEXT_BYTES_MAX = 128

# Patterns for parameters that begin with their name.
_JAVASCRIPT_PARAMETER = re.compile(
    rb"(?:(?:@[\w.]+(?:\([^()]*\))?|public|private|protected|readonly|override)\s+)*((?:\.\.\.)?[\w$\x80-\xff]+|[{\[])"
)
_SIMPLE_PARAMETER = {
    "go": re.compile(rb"[\w\x80-\xff]+"),
    "javascript": _JAVASCRIPT_PARAMETER,
    "python": re.compile(rb"\*{0,2}[\w\x80-\xff]+"),
    "rust": re.compile(rb"(?:&\s*)?(?:'\w+\s+)?(?:mut\s+)?((?:ref\s+)?[\w\x80-\xff]+)"),
    "tsx": _JAVASCRIPT_PARAMETER,
    "typescript": _JAVASCRIPT_PARAMETER,
}
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
_ALWAYS_PUBLIC_TYPES = frozenset({"import", "module"})


def parameter_namer(utf8: bytes, language: str) -> Callable[[Node, int], str]:
    """Return a function that returns the name of a parameter. Its arguments are the node and the offset of the node.

    The name of a destructured parameter is `{` or `[`. If a parameter has no name, its type is returned. For C's
    `void`, the result is empty.
    """
    simple = _SIMPLE_PARAMETER.get(language)
    if simple is None:
        return lambda node, _: _parameter_name(node, utf8, language)
    match_at = simple.match

    def name_by_text(node: Node, start: int) -> str:
        if (match := match_at(utf8, start)) is None:
            return _parameter_name(node, utf8, language)
        return match[match.lastindex or 0].decode("utf-8", "replace")

    return name_by_text


def _parameter_name(node: Node, utf8: bytes, language: str) -> str:
    text = utf8[node.start_byte : node.end_byte][:_TEXT_BYTES_MAX]
    match = None
    if language in ("c", "cpp"):
        if text == b"void" or text.startswith((b"//", b"/*")):
            return ""
        inner = node.child_by_field_name("declarator")
        while (
            inner is not None
            and (deeper := inner.child_by_field_name("declarator") or _inner_declarator(inner)) is not None
        ):
            inner = deeper
        text = utf8[inner.start_byte : inner.end_byte] if inner is not None else text
        match = _LAST_NAME.search(text[:_TEXT_BYTES_MAX])
    elif language == "java":
        name = node.child_by_field_name("name")
        match = _LAST_NAME.search(utf8[name.start_byte : name.end_byte] if name is not None else text)
    return (match[1] if match is not None else text).decode("utf-8", "replace")


def _inner_declarator(node: Node) -> Node | None:
    """Return the inner declarator of a declarator such as `(*f)` or `&x`, in which the grammar has no field for it."""
    return next((child for child in node.named_children if child.type.endswith(("declarator", "identifier"))), None)


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
            text = utf8[node.start_byte : node.end_byte][:_TEXT_BYTES_MAX]
            match = _DECORATOR_NAME.match(text)
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


def public_visibility(_name: str, _symbol_type: SymbolType, _around: str) -> Visibility:
    """Return `public`. This is the rule for languages in which names without a keyword are visible everywhere."""
    return "public"


def _visibility_by_underscore(name: str, symbol_type: SymbolType, _around: str) -> Visibility:
    return "private" if name[0] == "_" and symbol_type != "import" and not name.endswith("__") else "public"


def _visibility_by_capital(name: str, symbol_type: SymbolType, _around: str) -> Visibility:
    return "public" if name[0].isupper() or symbol_type in _ALWAYS_PUBLIC_TYPES else "private"


def _visibility_by_hash(name: str, _symbol_type: SymbolType, _around: str) -> Visibility:
    return "private" if name[0] == "#" else "public"


def _rust_visibility(_name: str, symbol_type: SymbolType, around: str) -> Visibility:
    is_public = symbol_type in ("enum_member", "macro", "import") or around in ("trait", "enum")
    return "public" if is_public else "private"


def _java_visibility(_name: str, symbol_type: SymbolType, around: str) -> Visibility:
    is_public = symbol_type == "enum_member" or symbol_type in _ALWAYS_PUBLIC_TYPES or around == "interface"
    return "public" if is_public else "internal"


def _cpp_visibility(_name: str, _symbol_type: SymbolType, around: str) -> Visibility:
    return "private" if around == "class" else "public"


# Functions that return the visibility of a name without a keyword. The arguments are the name, its symbol type, and the
# symbol type of the enclosing definition.
VISIBILITY_RULES: Mapping[str, Callable[[str, SymbolType, str], Visibility]] = {
    "cpp": _cpp_visibility,
    "go": _visibility_by_capital,
    "java": _java_visibility,
    "javascript": _visibility_by_hash,
    "python": _visibility_by_underscore,
    "rust": _rust_visibility,
    "tsx": _visibility_by_hash,
    "typescript": _visibility_by_hash,
}
