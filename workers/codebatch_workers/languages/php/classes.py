"""Classes in PHP files: the classes around a node, and the bases and traits of a class as written."""

from __future__ import annotations

from tree_sitter import Node

from codebatch_workers.syntax.nodes import innermost
from codebatch_workers.uses.file_facts import SourceFacts
from codebatch_workers.uses.file_symbol import FileSymbol

_CLASS_NODES = frozenset(
    {"anonymous_class", "class_declaration", "enum_declaration", "interface_declaration", "trait_declaration"}
)
_BASE_CLAUSES = frozenset({"base_clause", "class_interface_clause"})
_NAME_NODES = frozenset({"name", "qualified_name", "relative_name"})


def class_around(facts: SourceFacts, node: Node) -> FileSymbol | None:
    """Return the innermost class around a node. Return None if it has no name, or if there is none."""
    above = innermost(node, _CLASS_NODES)
    name = None if above is None else above.child_by_field_name("name")
    symbol = None if name is None else facts.symbol_at(name.start_byte)
    return None if symbol is None else FileSymbol(facts, symbol)


def bases_of(owner: FileSymbol) -> list[str]:
    """Return the base classes of a class as written, then its interfaces."""
    node = owner.declaration
    clauses = [] if node is None else [child for child in node.named_children if child.type in _BASE_CLAUSES]
    return [
        owner.facts.text(name)
        for clause in sorted(clauses, key=lambda clause: clause.type)
        for name in clause.named_children
        if name.type in _NAME_NODES
    ]


def traits_of(owner: FileSymbol) -> tuple[list[str], bool]:
    """Return the traits of a class as written, and whether it renames their members."""
    node = owner.declaration
    body = None if node is None else node.child_by_field_name("body")
    uses = [] if body is None else [child for child in body.named_children if child.type == "use_declaration"]
    traits = [owner.facts.text(name) for use in uses for name in use.named_children if name.type in _NAME_NODES]
    return traits, any(child.type == "use_list" for use in uses for child in use.named_children)
