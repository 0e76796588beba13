"""Definitions and names of Rust."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from tree_sitter import Node

from codebatch.model.record import SymbolType, Visibility
from codebatch_workers.languages.rust import BASE_MARK
from codebatch_workers.languages.rust.imported_names import read_imports
from codebatch_workers.languages.rust.names import read_names
from codebatch_workers.symbols.language_symbols import LanguageSymbols, MarkRules, ParameterRules
from codebatch_workers.symbols.occurrences.inner_names import is_marked_name
from codebatch_workers.syntax.source import SourceFile

_CHAIN_BYTES_MAX = 400
_CHAIN = re.compile(rb"(?:(?:[\w\x80-\xff$]+|(?<=[)\]}?>]))\s*(?:::|\.)\s*)*\Z")
_NAME = re.compile(rb"[\w\x80-\xff]+\Z")
_ARGUMENTS = re.compile(rb"\s*\(")
_DECLARATION = re.compile(rb"\b(?:fn|struct|enum|union|trait|type|mod)\s+\Z")


def _unmarked_calls(file: SourceFile) -> tuple[tuple[int, int], ...]:
    """Return the ranges of the chains of names that are called in arguments of macros, in text order.

    The grammar does not parse these arguments. There, a name before parentheses is a call: `a.f::<T>(…)`.
    """
    return tuple(sorted(_called_chains(file)))


def _called_chains(file: SourceFile) -> Iterator[tuple[int, int]]:
    utf8 = file.utf8
    attributes = [(node.start_byte, node.end_byte) for node in file.captures.get("attribute", ())]
    starts = [start for start, _ in attributes]
    for node in file.captures.get("token_call", ()):
        if not _ARGUMENTS.match(utf8, node.end_byte):
            continue  # The query ignores tokens such as a comma before the parenthesis.
        end = node.end_byte if node.is_named else _before_generics(utf8, node.end_byte)
        index = bisect_right(starts, end) - 1
        if index >= 0 and end <= attributes[index][1]:
            continue  # The argument of an attribute: `#[cfg(all(unix))]`.
        name = _NAME.search(utf8, max(end - _CHAIN_BYTES_MAX, 0), end)
        if name is not None and not _DECLARATION.search(utf8, max(name.start() - 20, 0), name.start()):
            chain = _CHAIN.search(utf8, max(name.start() - _CHAIN_BYTES_MAX, 0), name.start())
            yield chain.start() if chain is not None else name.start(), end


def _before_generics(utf8: bytes, end: int) -> int:
    """Return the offset before `::<…>`, which ends at `end`. Return `end` if the text there is a comparison."""
    depth = 0
    for position in range(end - 1, max(end - _CHAIN_BYTES_MAX, 0), -1):
        byte = utf8[position : position + 1]
        if byte == b">" and utf8[position - 1 : position] != b"-":
            depth += 1
        elif byte == b"<":
            depth -= 1
            if depth == 0:
                return position - 2 if utf8[position - 2 : position] == b"::" else end
    return end


# Formatting macros of Rust's standard library, with the number of arguments before the format string.
_FORMAT_ARGUMENT_INDEX = {
    **dict.fromkeys(
        (b"eprint", b"eprintln", b"format", b"format_args", b"panic", b"print", b"println", b"todo", b"unimplemented"),
        0,
    ),
    **dict.fromkeys((b"assert", b"debug_assert", b"unreachable", b"write", b"writeln"), 1),
    **dict.fromkeys((b"assert_eq", b"assert_ne", b"debug_assert_eq", b"debug_assert_ne"), 2),
    b"unreachable": 0,
}
_MACROS_WITHOUT_FORMAT = frozenset(
    b"cfg compile_error concat env include include_bytes include_str option_env vec".split()
)
# Attributes with format strings from thiserror, derive_more, displaydoc and snafu.
_FORMATTING_ATTRIBUTES = frozenset({b"display", b"error", b"snafu"})
_FORMAT_PLACE = re.compile(rb"\{\{|\{(\w+)(?::[^{}]*)?\}")
_FORMAT_WIDTH = re.compile(rb"\b(\w+)\$")


def _is_in_format(node: Node, utf8: bytes, start: int, end: int) -> bool:
    """Return whether the part is a name in a format string of Rust: `{name}`, `{name:?}` or `{:name$}`."""
    literal = node.parent
    if literal is None or not _is_format_string(literal, utf8):
        return False
    for match in _FORMAT_PLACE.finditer(utf8, node.start_byte, node.end_byte):
        if match.start() < start < match.end():
            return match.span(1) == (start, end) or any(
                width.span(1) == (start, end) for width in _FORMAT_WIDTH.finditer(utf8, *match.span())
            )
    # The pattern does not match `{:width$}`, which has no name before the colon.
    before = utf8.rfind(b"{", node.start_byte, start)
    is_width = utf8[end : end + 1] == b"$" and utf8[before : before + 2] == b"{:"
    return before >= 0 and is_width and b"}" not in utf8[before:start]


def _is_format_string(literal: Node, utf8: bytes) -> bool:
    tree = literal.parent
    if tree is None or tree.type != "token_tree" or tree.parent is None:
        return False
    owner = tree.parent
    name_node = (
        owner.child_by_field_name("macro") if owner.type == "macro_invocation" else next(iter(owner.children), None)
    )
    name = utf8[name_node.start_byte : name_node.end_byte].rpartition(b"::")[2] if name_node is not None else b""
    if owner.type == "attribute":
        return name in _FORMATTING_ATTRIBUTES
    if owner.type != "macro_invocation" or name in _MACROS_WITHOUT_FORMAT:
        return False
    position = _FORMAT_ARGUMENT_INDEX.get(name)
    before = [child for child in tree.children if child.end_byte <= literal.start_byte]
    return position is None or sum(child.type == "," for child in before) == position


def _visibility(_name: str, symbol_type: SymbolType, around: str) -> Visibility:
    is_public = symbol_type in ("enum_member", "macro", "import") or around in ("trait", "enum")
    return "public" if is_public else "private"


def _read_trait(node: Node) -> Iterator[str]:
    """Yield `impl A` for a node in the implementation of a trait."""
    body = node.parent if node.parent is not None and node.parent.type == "declaration_list" else None
    trait = body.parent.child_by_field_name("trait") if body is not None and body.parent is not None else None
    if trait is not None:
        yield BASE_MARK + (trait.text or b"").decode("utf-8", "replace")


# Marks that only describe a definition.
_DESCRIPTIONS = frozenset(
    b"allow automatically_derived cfg cfg_attr cold deny deprecated derive doc expect inline macro_export "
    b"must_use non_exhaustive repr skip target_feature track_caller warn".split()
)
SYMBOLS = {
    "rust": LanguageSymbols(
        scope_separator="::",
        parameters=ParameterRules(
            leading_name=re.compile(rb"(?:&\s*)?(?:'\w+\s+)?(?:mut\s+)?((?:ref\s+)?[\w\x80-\xff]+)")
        ),
        visibility=_visibility,
        imports=read_imports,
        inner_names={"identifier": is_marked_name, "string_content": _is_in_format},
        nameless_nodes=frozenset({"label", "lifetime"}),
        marks=MarkRules(descriptions=_DESCRIPTIONS, read_around=_read_trait),
        unmarked_calls=_unmarked_calls,
        used_names=read_names,
    ),
}
