"""Definitions and names of Java, Kotlin and Scala."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tree_sitter import Node

from codebatch.model.record import SymbolType, Visibility
from codebatch_workers.languages.jvm.imported_names import read_java_imports, read_kotlin_imports, read_scala_imports
from codebatch_workers.languages.jvm.names import read_java_names, read_kotlin_names, read_scala_names
from codebatch_workers.symbols.language_symbols import LanguageSymbols, MarkRules, ParameterRules
from codebatch_workers.symbols.occurrences.inner_names import is_marked_name
from codebatch_workers.symbols.parameters_and_visibility import declaration_text, last_name

_IMPLICIT = re.compile(rb"\bimplicit\b")


def _read_java_parameter(node: Node, utf8: bytes) -> str:
    name = node.child_by_field_name("name")
    text = declaration_text(node, utf8)
    written = last_name(text if name is None else utf8[name.start_byte : name.end_byte])
    return written or text.decode("utf-8", "replace")


def _java_visibility(_name: str, symbol_type: SymbolType, around: str) -> Visibility:
    is_public = symbol_type in ("enum_member", "import", "module") or around == "interface"
    return "public" if is_public else "internal"


def _is_interpolated_name(node: Node, utf8: bytes, start: int, _end: int) -> bool:
    """Return whether the part is `name` in Kotlin's `"$name"`.

    At the start of a string, the grammar parses this as text.
    """
    return start > node.start_byte - 1 and utf8[start - 1 : start] == b"$" and utf8[start - 2 : start - 1] not in b"\\$"


def _read_implicit(node: Node) -> Iterator[str]:
    if node.type == "modifiers" and _IMPLICIT.search(node.text or b""):
        yield "implicit"


def _read_given(node: Node) -> Iterator[str]:
    if node.type == "given_definition":
        yield "given"


SYMBOLS: Mapping[str, LanguageSymbols] = {
    "java": LanguageSymbols(
        parameters=ParameterRules(read_name=_read_java_parameter),
        visibility=_java_visibility,
        has_imports_without_calls=True,
        imports=read_java_imports,
        used_names=read_java_names,
    ),
    "kotlin": LanguageSymbols(
        imports=read_kotlin_imports,
        inner_names={"identifier": is_marked_name, "string_content": _is_interpolated_name},
        used_names=read_kotlin_names,
    ),
    "scala": LanguageSymbols(
        imports=read_scala_imports,
        inner_names={"identifier": is_marked_name},
        marks=MarkRules(read_before=_read_implicit, read_around=_read_given),
        outer_callees=frozenset({"generic_function"}),
        used_names=read_scala_names,
    ),
}
