"""Targets and bound names of import statements, for each language."""

from __future__ import annotations

import re

import msgspec
from tree_sitter import Node

from codebatch_workers.symbols.imported_names import (
    PREFIX_CHARS_MAX,
    ImportedName,
    ImportsReader,
    literal_text,
    node_text,
)
from codebatch_workers.symbols.named_files import lua_imports, php_imports, ruby_imports
from codebatch_workers.syntax.names import strip_generics


def python_imports(node: Node, utf8: bytes) -> list[ImportedName]:
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


def javascript_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the target and bound name of `import a = b.c`. The query itself captures all other imports."""
    if node.type != "import_alias":
        return []
    names = node.named_children
    return [ImportedName(node_text(names[1], utf8), names[1], names[0])] if len(names) > 1 else []


_INCLUDED_FILE = re.compile(rb'\s*(?:/\*.*?\*/\s*)*(?:"([^"\n]+)"|<([^>\n]+)>)', re.DOTALL)


def c_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the path between the quotes or brackets of an `#include`.

    If a macro is in place of the path, return the macro. The grammar does not parse the argument of `#import`, so the
    path is searched in its text.
    """
    if node.type == "preproc_call":
        argument = node.child_by_field_name("argument")
        match = None if argument is None else _INCLUDED_FILE.match(utf8, argument.start_byte, argument.end_byte)
        if argument is None or match is None:
            return []
        return [ImportedName((match[1] or match[2]).decode("utf-8", "replace"), argument, None)]
    path = node.child_by_field_name("path")
    if path is None:
        return []
    is_literal = path.type in ("string_literal", "system_lib_string")
    return [ImportedName(literal_text(path, utf8) if is_literal else node_text(path, utf8), path, None)]


def go_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the path of an import in Go.

    A name is bound only if the import sets one. Otherwise, the package's own name is bound, which is unknown here.
    """
    path = node.child_by_field_name("path")
    if path is None:
        return []
    name = node.child_by_field_name("name")
    return [
        ImportedName(
            literal_text(path, utf8), path, name if name is not None and name.type == "package_identifier" else None
        )
    ]


def java_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the target and bound name of a Java import.

    `import a.b.C` has the target `a.b.C` and binds `C`. `import a.b.*` has the target `a.b.*` and binds nothing.
    """
    name = next((child for child in node.named_children if child.type in ("scoped_identifier", "identifier")), None)
    if name is None:
        return []
    if any(child.type == "asterisk" for child in node.named_children):
        return [ImportedName(f"{node_text(name, utf8)}.*", name, None)]
    return [ImportedName(node_text(name, utf8), name, name.child_by_field_name("name") or name)]


def rust_imports(node: Node, utf8: bytes) -> list[ImportedName]:
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
    leaves = _rust_imported_names(node, utf8)
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

    At most _LEVELS_MAX levels are searched.
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


_NESTED_MODULES_MAX = 128


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


_PATH_ATTRIBUTE = re.compile(rb'#\s*\[\s*(?:cfg_attr\s*\(.*?,\s*)?path\s*=\s*(?:r(#*))?"([^"\\]+)"', re.DOTALL)


def _rust_imported_names(node: Node, utf8: bytes) -> list[ImportedName]:
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
            leaves.append(_rust_imported_name(prefix, part, utf8))
    return leaves


def _rust_imported_name(prefix: str, part: Node, utf8: bytes) -> ImportedName:
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


def kotlin_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the target of a Kotlin import: `a.b.C` for `import a.b.C as D`, and `a.b.*` for `import a.b.*`."""
    name = next((child for child in node.named_children if child.type == "qualified_identifier"), None)
    if name is None:
        return []
    star = ".*" if node_text(node, utf8).endswith(".*") else ""
    return [ImportedName(f"{node_text(name, utf8)}{star}", name, None)]


_PLAIN_USING = re.compile(rb"using ([A-Za-z_][\w.]*);")


def csharp_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the target of a C# `using`: `N` for `using N`, and `N.T` for `using static N.T` and `using A = N.T<int>`.

    An alias binds its name. `global using N` binds `N`, because it applies to the whole project.
    """
    plain = _PLAIN_USING.match(utf8, node.start_byte, node.end_byte)
    if plain is not None:
        return [ImportedName(plain[1].decode("utf-8", "replace"), node, None)]
    children = [child for child in node.named_children if child.type != "comment"]
    if not children or children[-1].type not in (
        "identifier",
        "qualified_name",
        "generic_name",
        "alias_qualified_name",
    ):
        return []
    target = children[-1]
    name = strip_generics(node_text(target, utf8).encode()).decode().removeprefix("global::")
    is_global = any(child.type == "global" for child in node.children)
    alias = node.child_by_field_name("name")
    return [ImportedName(name, target, alias or (target if is_global else None))]


def scala_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the targets of a Scala import: `a.B`, `a.C` and `e.*` for `import a.{B, C => D}, e._`."""
    names: list[ImportedName] = []
    prefix = ""
    leaf: Node | None = None
    for child in node.children:
        if child.type == ",":
            names.extend(_scala_imported_names(prefix, leaf, utf8))
            prefix, leaf = "", None
        elif child.is_named and len(prefix) <= PREFIX_CHARS_MAX:
            prefix += f"{node_text(leaf, utf8)}." if leaf is not None else ""
            leaf = child
            if child.type == "namespace_selectors":
                leaf = None
                names.extend(
                    name for part in child.named_children for name in _scala_imported_names(prefix, part, utf8)
                )
    return [*names, *_scala_imported_names(prefix, leaf, utf8)]


def _scala_imported_names(prefix: str, leaf: Node | None, utf8: bytes) -> list[ImportedName]:
    if leaf is None or len(prefix) > PREFIX_CHARS_MAX:
        return []
    name = leaf.child_by_field_name("name") or leaf
    last = "*" if name.type == "namespace_wildcard" or node_text(name, utf8) == "given" else node_text(name, utf8)
    return [ImportedName(prefix + last, name, None)]


def swift_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the module of a Swift import, or the definition in it: `import struct A.B` has the target `A.B`."""
    name = next((child for child in node.named_children if child.type == "identifier"), None)
    return [] if name is None else [ImportedName(node_text(name, utf8), name, None)]


IMPORTS_BY_LANGUAGE: dict[str, ImportsReader] = {
    "c": c_imports,
    "cpp": c_imports,
    "csharp": csharp_imports,
    "go": go_imports,
    "java": java_imports,
    "javascript": javascript_imports,
    "kotlin": kotlin_imports,
    "lua": lua_imports,
    "php": php_imports,
    "python": python_imports,
    "ruby": ruby_imports,
    "rust": rust_imports,
    "scala": scala_imports,
    "swift": swift_imports,
    "tsx": javascript_imports,
    "typescript": javascript_imports,
}
