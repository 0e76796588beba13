"""Definitions and names of Ruby."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tree_sitter import Node

from codebatch_workers.languages.ruby.imported_names import read_imports
from codebatch_workers.languages.ruby.inner_names import is_listed_symbol, is_symbol
from codebatch_workers.languages.ruby.names import read_names
from codebatch_workers.languages.ruby.unmarked_calls import unmarked_calls
from codebatch_workers.symbols.language_symbols import LanguageSymbols, LoadTime, MarkRules

_ACCESS = frozenset({"module_function", "private", "private_class_method", "protected", "public"})


def _is_autoload(node: Node, utf8: bytes) -> bool:
    method = node.child_by_field_name("method")
    return method is not None and utf8[method.start_byte : method.end_byte] == b"autoload"


def _read_method_around(node: Node) -> Iterator[str]:
    """Yield the method that gets a definition as its argument, as in `memoize def name`."""
    call = node.parent if node.type == "argument_list" else None
    if call is not None and (call.text or b"").isascii():
        method = call.child_by_field_name("method")
        name = "" if method is None else (method.text or b"").decode("utf-8", "replace")
        if method is not None and name not in _ACCESS:
            yield name


SYMBOLS: Mapping[str, LanguageSymbols] = {
    "ruby": LanguageSymbols(
        imports=read_imports,
        load_time=LoadTime(function_nodes=frozenset({"method", "singleton_method"}), is_deferred=_is_autoload),
        inner_names={
            "hash_key_symbol": is_symbol,
            "simple_symbol": is_symbol,
            "string_content": is_listed_symbol,
        },
        marks=MarkRules(read_around=_read_method_around),
        unmarked_calls=unmarked_calls,
        used_names=read_names,
    ),
}
