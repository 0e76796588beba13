"""Definitions and names of Lua."""

from __future__ import annotations

from tree_sitter import Node

from codebatch_workers.symbols.imported_names import ImportedName, call_arguments, node_text
from codebatch_workers.symbols.language_symbols import LanguageSymbols, LoadTime

# Functions that call their first argument: `pcall(require, "a")`. The value is the number of arguments before those
# that are passed on.
_CALLERS = {"pcall": 1, "xpcall": 2}


def _read_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the module in Lua's `require "a.b"` or `pcall(require, "a.b")` if the module is a plain string."""
    name = node.child_by_field_name("name")
    path_nodes = call_arguments(node)
    skipped = _CALLERS.get("" if name is None else node_text(name, utf8), 0)
    if skipped and (not path_nodes or node_text(path_nodes[0], utf8) != "require"):
        return []
    path_nodes = path_nodes[skipped : skipped + 1]
    content = path_nodes[0].child_by_field_name("content") if path_nodes and path_nodes[0].type == "string" else None
    return [] if content is None else [ImportedName(node_text(content, utf8), content, None)]


SYMBOLS = {
    "lua": LanguageSymbols(
        imports=_read_imports,
        import_calls=frozenset({"function_call"}),
        load_time=LoadTime(function_nodes=frozenset({"function_declaration", "function_definition"})),
    ),
}
