"""Targets and bound names of `use`, `mod` and `extern crate` in Rust."""

from __future__ import annotations

import re

import msgspec
from tree_sitter import Node

from codebatch_workers.symbols.imported_names import PREFIX_CHARS_MAX, ImportedName, node_text

_NESTED_MODULES_MAX = 128
_PATH_ATTRIBUTE = re.compile(rb'#\s*\[\s*(?:cfg_attr\s*\(.*?,\s*)?path\s*=\s*(?:r(#*))?"([^"\\]+)"', re.DOTALL)


def read_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the targets of a Rust import: `a::b` and `a::c::*` for `use a::{b, c::*}`, and `self::a` for `mod a;`.

    Targets with `self` and `super` are relative to the file's own module, even if the import is in an inner module. For
    example, `use super::a` in `mod tests {…}` has the target `self::a`.
    """
    if node.type == "mod_item":
        name = node.child_by_field_name("name")
        if name is None:
            return []
        target = "::".join(["self", *modules_around(node, utf8), node_text(name, utf8)])
        files = _module_files(node, name, utf8)
        if not files:
            return [ImportedName(target, name, None, is_module=True)]
        # If there are several files, conditional compilation chooses one of them. Each file gets an edge, and each edge
        # needs another location.
        places = [name, *(place for place, _ in files[1:])]
        return [
            ImportedName(target, place, None, is_module=True, module_file=file)
            for place, (_, file) in zip(places, files, strict=True)
        ]
    if node.type == "extern_crate_declaration":
        name = node.child_by_field_name("name")
        return (
            []
            if name is None
            else [ImportedName(node_text(name, utf8), name, node.child_by_field_name("alias") or name)]
        )
    leaves = _imported_names(node, utf8)
    if any(leaf.target.startswith(("self", "super")) for leaf in leaves):
        inner = modules_around(node, utf8)
        if inner:
            return [msgspec.structs.replace(leaf, target=path_from_file(leaf.target, inner)) for leaf in leaves]
    return leaves


def modules_around(node: Node, utf8: bytes) -> list[str]:
    """Return the names of the inline modules that contain a node, outermost first."""
    names = (module.child_by_field_name("name") for module in _module_nodes_around(node))
    return [node_text(name, utf8) for name in names if name is not None]


def _module_nodes_around(node: Node) -> list[Node]:
    """Return the nodes of the inline modules that contain a node, outermost first.

    At most _NESTED_MODULES_MAX levels are searched.
    """
    modules: list[Node] = []
    above = node.parent
    for _ in range(_NESTED_MODULES_MAX):
        if above is None:
            break
        if above.type == "mod_item":
            modules.append(above)
        above = above.parent
    return modules[::-1]


def path_from_file(target: str, inner: list[str]) -> str:
    """Convert a path that is relative to an inner module to a path that is relative to the file's own module.

    `inner` are the names of the modules from the file's own module to the inner module.
    """
    parts = target.split("::")
    if parts[0] not in ("self", "super"):
        return target
    modules = list(inner)
    while parts and parts[0] in ("self", "super"):
        if parts[0] == "super":
            if not modules:
                break
            modules.pop()
        parts.pop(0)
    return "::".join([*modules, *parts] if parts and parts[0] == "super" else ["self", *modules, *parts])


def _module_files(node: Node, name: Node, utf8: bytes) -> list[tuple[Node, str]]:
    """Return the files that `#[path]` attributes set for a module, each with the node of its attribute.

    If no attribute sets a file, the list is empty. A file `./x` is relative to the directory of the source file. A file
    `x` is relative to the directory in which the submodules of the source file are searched (The Rust Reference, "The
    path attribute").
    """
    steps: list[str] = []
    is_sibling = False
    has_path = False
    for module in _module_nodes_around(node):
        written = _path_attributes(module, utf8)
        if written:
            is_sibling = is_sibling or not steps
            has_path = True
            steps.append(written[0][1])
        else:
            module_name = module.child_by_field_name("name")
            steps.append("" if module_name is None else node_text(module_name, utf8).removeprefix("r#"))
    written = _path_attributes(node, utf8)
    if not written:
        last = node_text(name, utf8).removeprefix("r#")
        return [(node, ("./" if is_sibling else "") + "/".join([*steps, last]))] if has_path else []
    prefix = "./" if is_sibling or not steps else ""
    return [(attribute, prefix + "/".join([*steps, file])) for attribute, file in written]


def _path_attributes(node: Node, utf8: bytes) -> list[tuple[Node, str]]:
    """Return the attributes `#[path = "…"]` of a module, also those within `cfg_attr`, each with its path."""
    attributes: list[tuple[Node, str]] = []
    before = node.prev_named_sibling
    while before is not None and before.type in ("attribute_item", "line_comment", "block_comment"):
        match = _PATH_ATTRIBUTE.match(utf8, before.start_byte, before.end_byte)
        if match is not None:
            attributes.insert(0, (before, match[2].decode("utf-8", "replace")))
        before = before.prev_named_sibling
    return attributes


def _imported_names(node: Node, utf8: bytes) -> list[ImportedName]:
    tree = node.child_by_field_name("argument")
    leaves: list[ImportedName] = []
    pending = [("", tree)] if tree is not None else []
    while pending:
        prefix, part = pending.pop()
        if len(prefix) > PREFIX_CHARS_MAX:
            continue
        if part.type == "scoped_use_list":
            path = part.child_by_field_name("path")
            inner = part.child_by_field_name("list")
            if inner is not None:
                pending.append((f"{prefix}{node_text(path, utf8)}::" if path is not None else prefix, inner))
        elif part.type == "use_list":
            pending.extend((prefix, child) for child in reversed(part.named_children))
        elif part.type not in ("line_comment", "block_comment"):
            leaves.append(_imported_name(prefix, part, utf8))
    return leaves


def _imported_name(prefix: str, part: Node, utf8: bytes) -> ImportedName:
    if part.type == "use_wildcard":
        return ImportedName(prefix + node_text(part, utf8), part, None)
    if part.type == "use_as_clause":
        path = part.child_by_field_name("path") or part
        name = node_text(path, utf8)
        target = prefix.removesuffix("::") if prefix and name == "self" else prefix + name
        return ImportedName(target, path, part.child_by_field_name("alias"))
    if part.type == "self":
        return ImportedName(prefix.removesuffix("::"), part, None)
    return ImportedName(prefix + node_text(part, utf8), part, part.child_by_field_name("name") or part)
