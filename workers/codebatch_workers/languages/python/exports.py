"""The names that a Python module lists in `__all__`."""

from __future__ import annotations

from tree_sitter import Node

from codebatch_workers.symbols.imported_names import literal_text
from codebatch_workers.syntax.source import SourceFile

_LISTS = frozenset({"list", "tuple"})


def python_exports(file: SourceFile) -> frozenset[str] | None:
    """Return the names in `__all__`. Return None if its only assignment at top level is not a list of texts."""
    statements = () if file.tree is None else file.tree.root_node.named_children
    values: list[Node | None] = []
    for statement in statements:
        for assignment in statement.named_children if statement.type == "expression_statement" else ():
            left = assignment.child_by_field_name("left")
            if left is not None and file.utf8[left.start_byte : left.end_byte] == b"__all__":
                values.append(assignment.child_by_field_name("right") if assignment.type == "assignment" else None)
    if len(values) != 1 or values[0] is None or values[0].type not in _LISTS or b"__all__." in file.utf8:
        return None
    texts = [item for item in values[0].named_children if item.type != "comment"]
    if any(text.type != "string" for text in texts):
        return None
    return frozenset(literal_text(text, file.utf8) for text in texts)
