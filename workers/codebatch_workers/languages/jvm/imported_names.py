"""Targets and bound names of imports in Java, Kotlin and Scala."""

from __future__ import annotations

from tree_sitter import Node

from codebatch_workers.symbols.imported_names import PREFIX_CHARS_MAX, ImportedName, node_text


def read_java_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the target and bound name of a Java import.

    `import a.b.C` has the target `a.b.C` and binds `C`. `import a.b.*` has the target `a.b.*` and binds nothing.
    """
    name = next((child for child in node.named_children if child.type in ("scoped_identifier", "identifier")), None)
    if name is None:
        return []
    if any(child.type == "asterisk" for child in node.named_children):
        return [ImportedName(f"{node_text(name, utf8)}.*", name, None)]
    return [ImportedName(node_text(name, utf8), name, name.child_by_field_name("name") or name)]


def read_kotlin_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the target of a Kotlin import: `a.b.C` for `import a.b.C as D`, and `a.b.*` for `import a.b.*`."""
    name = next((child for child in node.named_children if child.type == "qualified_identifier"), None)
    if name is None:
        return []
    star = ".*" if node_text(node, utf8).endswith(".*") else ""
    return [ImportedName(f"{node_text(name, utf8)}{star}", name, None)]


def read_scala_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the targets of a Scala import: `a.B`, `a.C` and `e.*` for `import a.{B, C => D}, e._`."""
    names: list[ImportedName] = []
    prefix = ""
    leaf: Node | None = None
    for child in node.children:
        if child.type == ",":
            names.extend(_imported_names(prefix, leaf, utf8))
            prefix, leaf = "", None
        elif child.is_named and len(prefix) <= PREFIX_CHARS_MAX:
            prefix += f"{node_text(leaf, utf8)}." if leaf is not None else ""
            leaf = child
            if child.type == "namespace_selectors":
                leaf = None
                names.extend(name for part in child.named_children for name in _imported_names(prefix, part, utf8))
    return [*names, *_imported_names(prefix, leaf, utf8)]


def _imported_names(prefix: str, leaf: Node | None, utf8: bytes) -> list[ImportedName]:
    if leaf is None or len(prefix) > PREFIX_CHARS_MAX:
        return []
    name = leaf.child_by_field_name("name") or leaf
    last = "*" if name.type == "namespace_wildcard" or node_text(name, utf8) == "given" else node_text(name, utf8)
    return [ImportedName(prefix + last, name, None)]
