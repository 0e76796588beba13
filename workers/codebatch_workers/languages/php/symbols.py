"""Definitions and names of PHP."""

from __future__ import annotations

from collections.abc import Mapping

from tree_sitter import Node

from codebatch_workers.languages.php.imported_names import read_imports
from codebatch_workers.languages.php.names import read_names
from codebatch_workers.symbols.language_symbols import LanguageSymbols, LoadTime, ParameterRules
from codebatch_workers.symbols.load_time import is_within

_FUNCTION_NODES = frozenset({"function_definition", "method_declaration", "anonymous_function", "arrow_function"})


def _is_deferred(node: Node, _utf8: bytes) -> bool:
    """Return whether an import of a file is in a function. The names in a `use` are resolved before any code runs."""
    return node.type != "namespace_use_declaration" and is_within(node, _FUNCTION_NODES)


SYMBOLS: Mapping[str, LanguageSymbols] = {
    "php": LanguageSymbols(
        parameters=ParameterRules(declare_fields=True),
        imports=read_imports,
        load_time=LoadTime(is_deferred=_is_deferred),
        used_names=read_names,
    ),
}
