"""What import statements name and bind, per language."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node


class Import(NamedTuple):
    """One thing imported: its name as written, where, and the node of the local name that it binds, if any.

    Where one statement binds several names of one target, the target stands in the first and is empty in the others.
    """

    target: str
    node: Node
    bound: Node | None


ImportsOf = Callable[["Node", bytes], list[Import]]


def _text(node: Node, utf8: bytes) -> str:
    """A name as written, without the whitespace that some grammars allow inside."""
    return b"".join(utf8[node.start_byte : node.end_byte].split()).decode("utf-8", "replace")


def _literal(node: Node, utf8: bytes) -> str:
    """What is between a literal's quotes or brackets."""
    return utf8[node.start_byte + 1 : node.end_byte - 1].decode("utf-8", "replace")


def imports_of_python(node: Node, utf8: bytes) -> list[Import]:
    """`import a.b` is `a.b` and binds `a`; `from ..a import b as c` is `..a.b` and binds `c`."""
    module = node.child_by_field_name("module_name")
    prefix = ""
    if node.type == "future_import_statement":
        prefix = "__future__."
    elif module is not None:
        written = _text(module, utf8)
        prefix = written if written.endswith(".") else f"{written}."
    found = []
    for name in node.children_by_field_name("name"):
        dotted, bound = name, name
        if name.type == "aliased_import":
            dotted = name.child_by_field_name("name") or name
            bound = name.child_by_field_name("alias") or name
        elif not prefix:
            bound = name.named_children[0] if name.named_child_count else name
        found.append(Import(prefix + _text(dotted, utf8), dotted, bound))
    if module is not None:
        found.extend(
            Import(f"{prefix}*", child, None) for child in node.named_children if child.type == "wildcard_import"
        )
    return found


def imports_of_script(node: Node, utf8: bytes) -> list[Import]:
    """The module's specifier, once per statement that binds nothing, else once per name bound."""
    if node.type == "import_alias":
        names = node.named_children
        return [Import(_text(names[1], utf8), names[1], names[0])] if len(names) > 1 else []
    source = node.child_by_field_name("source")
    bound: list[Node] = []
    for clause in node.named_children:
        if clause.type == "import_require_clause":
            source = clause.child_by_field_name("source")
            bound.extend(clause.named_children[:1])
        elif clause.type == "import_clause":
            bound.extend(_bound_by_clause(clause))
    if source is None:
        return []
    target = _literal(source, utf8)
    return [Import(target, source, None), *(Import("", source, name) for name in bound)]


def _bound_by_clause(clause: Node) -> list[Node]:
    bound: list[Node] = []
    for part in clause.named_children:
        if part.type == "identifier":
            bound.append(part)
        elif part.type == "namespace_import":
            bound.extend(part.named_children[:1])
        elif part.type == "named_imports":
            for specifier in part.named_children:
                name = specifier.child_by_field_name("alias") or specifier.child_by_field_name("name")
                if name is not None:
                    bound.append(name)
    return bound


def imports_of_c(node: Node, utf8: bytes) -> list[Import]:
    """The path between the quotes or brackets; a macro as written."""
    path = node.child_by_field_name("path")
    if path is None:
        return []
    is_literal = path.type in ("string_literal", "system_lib_string")
    return [Import(_literal(path, utf8) if is_literal else _text(path, utf8), path, None)]


def imports_of_go(node: Node, utf8: bytes) -> list[Import]:
    """The path; only an explicit name is bound, for the package's own is not in this file."""
    path = node.child_by_field_name("path")
    if path is None:
        return []
    name = node.child_by_field_name("name")
    return [
        Import(_literal(path, utf8), path, name if name is not None and name.type == "package_identifier" else None)
    ]


def imports_of_java(node: Node, utf8: bytes) -> list[Import]:
    """`import a.b.C` binds `C`; `import a.b.*` binds nothing."""
    name = next((child for child in node.named_children if child.type in ("scoped_identifier", "identifier")), None)
    if name is None:
        return []
    if any(child.type == "asterisk" for child in node.named_children):
        return [Import(f"{_text(name, utf8)}.*", name, None)]
    return [Import(_text(name, utf8), name, name.child_by_field_name("name") or name)]


def imports_of_rust(node: Node, utf8: bytes) -> list[Import]:
    """Every leaf of a `use` tree: `use a::{b, c::*}` is `a::b` and `a::c::*`; `mod a;` is `self::a`."""
    if node.type == "mod_item":
        name = node.child_by_field_name("name")
        return [] if name is None else [Import(f"self::{_text(name, utf8)}", name, None)]
    if node.type == "extern_crate_declaration":
        name = node.child_by_field_name("name")
        return [] if name is None else [Import(_text(name, utf8), name, node.child_by_field_name("alias") or name)]
    tree = node.child_by_field_name("argument")
    found: list[Import] = []
    pending = [("", tree)] if tree is not None else []
    while pending:
        prefix, part = pending.pop()
        if len(prefix) > _USE_PREFIX_CHARS_MAX:
            continue
        if part.type == "scoped_use_list":
            path = part.child_by_field_name("path")
            inner = part.child_by_field_name("list")
            if inner is not None:
                pending.append((f"{prefix}{_text(path, utf8)}::" if path is not None else prefix, inner))
        elif part.type == "use_list":
            pending.extend((prefix, child) for child in reversed(part.named_children))
        elif part.type not in ("line_comment", "block_comment"):
            found.append(_rust_leaf(prefix, part, utf8))
    return found


# A use tree nested deeper than this is made to hurt: each level repeats the prefix.
_USE_PREFIX_CHARS_MAX = 1024


def _rust_leaf(prefix: str, part: Node, utf8: bytes) -> Import:
    if part.type == "use_wildcard":
        return Import(prefix + _text(part, utf8), part, None)
    if part.type == "use_as_clause":
        path = part.child_by_field_name("path") or part
        return Import(prefix + _text(path, utf8), path, part.child_by_field_name("alias"))
    if part.type == "self":
        return Import(prefix.removesuffix("::"), part, None)
    return Import(prefix + _text(part, utf8), part, part.child_by_field_name("name") or part)


IMPORTS: dict[str, ImportsOf] = {
    "c": imports_of_c,
    "cpp": imports_of_c,
    "go": imports_of_go,
    "java": imports_of_java,
    "javascript": imports_of_script,
    "python": imports_of_python,
    "rust": imports_of_rust,
    "tsx": imports_of_script,
    "typescript": imports_of_script,
}
