"""What a definition says of itself beside its name: parameters, decorators, visibility.

Whatever stands before a name and belongs to it is found by position: it is the next name's. Captures:

    parameter      a parameter of the function around it
    decorator, decorated    a decorator or annotation, as written
    visibility     a keyword that says who sees the next name
    access         C++'s `public:`, for all members of the class from there on
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from codebatch.model.record import SymbolType, Visibility

if TYPE_CHECKING:
    from tree_sitter import Node

# A longer one is no name but a pattern, or data.
_TEXT_BYTES_MAX = 128

# What a parameter begins with, where that is its name.
_OF_SCRIPTS = re.compile(
    rb"(?:(?:@[\w.]+(?:\([^()]*\))?|public|private|protected|readonly|override)\s+)*((?:\.\.\.)?[\w$\x80-\xff]+|[{\[])"
)
_SIMPLE_PARAMETER = {
    "go": re.compile(rb"[\w\x80-\xff]+"),
    "javascript": _OF_SCRIPTS,
    "python": re.compile(rb"\*{0,2}[\w\x80-\xff]+"),
    "rust": re.compile(rb"(?:&\s*)?(?:'\w+\s+)?(?:mut\s+)?((?:ref\s+)?[\w\x80-\xff]+)"),
    "tsx": _OF_SCRIPTS,
    "typescript": _OF_SCRIPTS,
}
_LAST_NAME = re.compile(rb"([\w$\x80-\xff]+|\.\.\.)(?:\s*\[[^\]]*\])*\Z")
_DECORATOR = re.compile(rb"@?\s*([\w.$\x80-\xff]+)")
_VISIBILITIES: Mapping[bytes, Visibility] = {
    b"public": "public",
    b"pub": "public",
    b"protected": "protected",
    b"private": "private",
    b"static": "private",
}
_NEITHER = frozenset({"import", "module"})


def parameter_naming(utf8: bytes, language: str) -> Callable[[Node, int], str]:
    """What names a parameter, by its node and where that starts; `{` or `[` where it is taken apart; its type where it
    has none; empty for C's `void`.
    """
    simple = _SIMPLE_PARAMETER.get(language)
    if simple is None:
        return lambda node, _: _parameter_name(node, utf8, language)
    match_at = simple.match

    def simply(node: Node, start: int) -> str:
        if (match := match_at(utf8, start)) is None:
            return _parameter_name(node, utf8, language)
        return match[match.lastindex or 0].decode("utf-8", "replace")

    return simply


def _parameter_name(node: Node, utf8: bytes, language: str) -> str:
    text = utf8[node.start_byte : node.end_byte][:_TEXT_BYTES_MAX]
    match = None
    if language in ("c", "cpp"):
        if text == b"void" or text.startswith((b"//", b"/*")):
            return ""
        inner = node.child_by_field_name("declarator")
        while inner is not None and (deeper := inner.child_by_field_name("declarator") or _only(inner)) is not None:
            inner = deeper
        text = utf8[inner.start_byte : inner.end_byte] if inner is not None else text
        match = _LAST_NAME.search(text[:_TEXT_BYTES_MAX])
    elif language == "java":
        name = node.child_by_field_name("name")
        match = _LAST_NAME.search(utf8[name.start_byte : name.end_byte] if name is not None else text)
    return (match[1] if match is not None else text).decode("utf-8", "replace")


def _only(node: Node) -> Node | None:
    """What a declarator without a field for it declares: `(*f)`, `&x`."""
    return next((child for child in node.named_children if child.type.endswith(("declarator", "identifier"))), None)


def decorators_of(
    captures: Mapping[str, Sequence[Node]], utf8: bytes, starts: Sequence[int], is_inside: Callable[[int], bool]
) -> dict[int, tuple[str, ...]]:
    """By the place of a name, the names of what decorates it, outermost first.

    `starts` are the places of all names, ascending; `is_inside` tells of a place that it decorates a parameter.
    """
    found: dict[int, list[tuple[int, str]]] = {}
    for capture in ("decorator", "decorated"):
        for node in captures.get(capture, ()):
            text = utf8[node.start_byte : node.end_byte][:_TEXT_BYTES_MAX]
            match = _DECORATOR.match(text)
            following = bisect_left(starts, node.end_byte)
            if match is not None and following < len(starts) and not is_inside(node.start_byte):
                name = match[1].decode("utf-8", "replace")
                found.setdefault(starts[following], []).append((node.start_byte, name))
    return {start: tuple(name for _, name in sorted(names)) for start, names in found.items()}


def keywords_of(captures: Mapping[str, Sequence[Node]], utf8: bytes, starts: Sequence[int]) -> dict[int, Visibility]:
    """By the place of a name, who sees it as far as a keyword before it says."""
    found: dict[int, Visibility] = {}
    for node in captures.get("visibility", ()):
        text = utf8[node.start_byte : node.end_byte]
        following = bisect_left(starts, node.end_byte)
        if following < len(starts):
            visibility = _VISIBILITIES.get(text) or ("internal" if text.startswith(b"pub") else None)
            if visibility is not None:
                found[starts[following]] = visibility
    return found


class Sections:
    """C++'s access specifiers, by the class whose members they part."""

    def __init__(self, captures: Mapping[str, Sequence[Node]], utf8: bytes, scope_at: Callable[[int], str]) -> None:
        self._found: dict[str, list[tuple[int, Visibility]]] = {}
        for node in captures.get("access", ()):
            text = utf8[node.start_byte : node.end_byte].split(b":")[0].strip()
            if text in _VISIBILITIES:
                self._found.setdefault(scope_at(node.start_byte), []).append((node.start_byte, _VISIBILITIES[text]))

    def __bool__(self) -> bool:
        return bool(self._found)

    def of(self, scope: str, start: int) -> Visibility | None:
        """What the last specifier before a member says, None where there is none."""
        sections = self._found.get(scope, [])
        before = bisect_right(sections, (start, cast("Visibility", "~")))
        return sections[before - 1][1] if before else None


def visible_to_all(_name: str, _symbol_type: SymbolType, _around: str) -> Visibility:
    """Where a language has no rule."""
    return "public"


def _by_underscore(name: str, symbol_type: SymbolType, _around: str) -> Visibility:
    return "private" if name[0] == "_" and symbol_type != "import" and not name.endswith("__") else "public"


def _by_capital(name: str, symbol_type: SymbolType, _around: str) -> Visibility:
    return "public" if name[0].isupper() or symbol_type in _NEITHER else "private"


def _by_hash(name: str, _symbol_type: SymbolType, _around: str) -> Visibility:
    return "private" if name[0] == "#" else "public"


def _of_rust(_name: str, symbol_type: SymbolType, around: str) -> Visibility:
    is_public = symbol_type in ("enum_member", "macro", "import") or around in ("trait", "enum")
    return "public" if is_public else "private"


def _of_java(_name: str, symbol_type: SymbolType, around: str) -> Visibility:
    is_public = symbol_type == "enum_member" or symbol_type in _NEITHER or around == "interface"
    return "public" if is_public else "internal"


def _of_cpp(_name: str, _symbol_type: SymbolType, around: str) -> Visibility:
    return "private" if around == "class" else "public"


# Who sees a name of which no keyword says it: by the name, its kind, and the kind of what encloses it.
VISIBILITY_RULES: Mapping[str, Callable[[str, SymbolType, str], Visibility]] = {
    "cpp": _of_cpp,
    "go": _by_capital,
    "java": _of_java,
    "javascript": _by_hash,
    "python": _by_underscore,
    "rust": _of_rust,
    "tsx": _by_hash,
    "typescript": _by_hash,
}
