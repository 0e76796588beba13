"""Targets and bound names of imports in Python."""

from __future__ import annotations

from tree_sitter import Node

from codebatch_workers.symbols.imported_names import ImportedName, node_text


def read_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the targets and bound names of a Python import.

    `import a.b` has the target `a.b` and binds `a`. `from ..a import b as c` has the target `..a.b` and binds `c`.
    """
    module = node.child_by_field_name("module_name")
    prefix = ""
    if node.type == "future_import_statement":
        prefix = "__future__."
    elif module is not None:
        written = node_text(module, utf8)
        prefix = written if written.endswith(".") else f"{written}."
    names = []
    for name in node.children_by_field_name("name"):
        dotted, bound = name, name
        if name.type == "aliased_import":
            dotted = name.child_by_field_name("name") or name
            bound = name.child_by_field_name("alias") or name
        elif not prefix:
            bound = name.named_children[0] if name.named_child_count else name
        target = prefix + node_text(dotted, utf8)
        names.append(ImportedName(target, dotted, bound, is_module=not prefix and "." in target))
    if module is not None and not names:
        names.extend(
            ImportedName(f"{prefix}*", child, None) for child in node.named_children if child.type == "wildcard_import"
        )
    return names
