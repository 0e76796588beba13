"""Definitions and names of Ruby."""

from __future__ import annotations

from collections.abc import Mapping

from tree_sitter import Node

from codebatch_workers.languages.ruby.imported_names import read_imports
from codebatch_workers.languages.ruby.names import read_names
from codebatch_workers.symbols.language_symbols import LanguageSymbols, LoadTime


def _is_autoload(node: Node, utf8: bytes) -> bool:
    method = node.child_by_field_name("method")
    return method is not None and utf8[method.start_byte : method.end_byte] == b"autoload"


SYMBOLS: Mapping[str, LanguageSymbols] = {
    "ruby": LanguageSymbols(
        imports=read_imports,
        load_time=LoadTime(function_nodes=frozenset({"method", "singleton_method"}), is_deferred=_is_autoload),
        used_names=read_names,
    ),
}
