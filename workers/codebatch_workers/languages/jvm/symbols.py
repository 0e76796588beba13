"""Definitions and names of Java, Kotlin and Scala."""

from __future__ import annotations

from collections.abc import Mapping

from tree_sitter import Node

from codebatch.model.record import SymbolType, Visibility
from codebatch_workers.languages.jvm.imported_names import read_java_imports, read_kotlin_imports, read_scala_imports
from codebatch_workers.languages.jvm.names import read_java_names, read_kotlin_names, read_scala_names
from codebatch_workers.symbols.language_symbols import LanguageSymbols, ParameterRules
from codebatch_workers.symbols.parameters_and_visibility import declaration_text, last_name


def _read_java_parameter(node: Node, utf8: bytes) -> str:
    name = node.child_by_field_name("name")
    text = declaration_text(node, utf8)
    written = last_name(text if name is None else utf8[name.start_byte : name.end_byte])
    return written or text.decode("utf-8", "replace")


def _java_visibility(_name: str, symbol_type: SymbolType, around: str) -> Visibility:
    is_public = symbol_type in ("enum_member", "import", "module") or around == "interface"
    return "public" if is_public else "internal"


SYMBOLS: Mapping[str, LanguageSymbols] = {
    "java": LanguageSymbols(
        parameters=ParameterRules(read_name=_read_java_parameter),
        visibility=_java_visibility,
        imports=read_java_imports,
        used_names=read_java_names,
    ),
    "kotlin": LanguageSymbols(imports=read_kotlin_imports, used_names=read_kotlin_names),
    "scala": LanguageSymbols(imports=read_scala_imports, used_names=read_scala_names),
}
