"""The names of Lua functions, which can be assigned."""

from __future__ import annotations

from tree_sitter import Node

from codebatch.model.record import SymbolType
from codebatch_workers.syntax.names import DeclaredName, plain_name


def declared_names(node: Node, symbol_type: SymbolType, utf8: bytes) -> list[DeclaredName]:
    """Return the name of a Lua function, or the target that it is assigned to: `M.f = function`, `{ f = function }`.

    The owner of `M.a.f` and `M.a:f` is `M.a`.
    """
    if node.type != "function_definition":
        return _lua_name(node.child_by_field_name("name"), symbol_type, utf8)
    holder = node.parent
    if holder is None:
        return []
    if holder.type == "field":
        target = holder.child_by_field_name("name")
    else:
        statement = holder.parent
        targets = statement.named_child(0) if statement is not None else None
        names = targets.children_by_field_name("name") if targets is not None else []
        index = holder.children_by_field_name("value").index(node)
        target = names[index] if index < len(names) else None
    if target is not None and target.type == "bracket_index_expression":
        target = target.child_by_field_name("field")
    if target is not None and target.type == "string":
        target = target.child_by_field_name("content")
    return _lua_name(target, symbol_type, utf8) if target is None or target.type in _LUA_NAME_NODES else []


def _lua_name(target: Node | None, symbol_type: SymbolType, utf8: bytes) -> list[DeclaredName]:
    if target is None or not target.type.endswith("_index_expression"):
        return plain_name(target, symbol_type)
    owner = target.child_by_field_name("table")
    name = target.child_by_field_name("field") or target.child_by_field_name("method")
    written = b"" if owner is None else b"".join(utf8[owner.start_byte : owner.end_byte].split())
    return plain_name(name, symbol_type, written.decode("utf-8", "replace"))


_LUA_NAME_NODES = frozenset({"dot_index_expression", "identifier", "string_content"})
