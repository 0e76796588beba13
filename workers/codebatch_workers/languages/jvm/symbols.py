"""Definitions and names of Java, Kotlin and Scala."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from codebatch.model.analysis.uses import ANONYMOUS_MARK
from codebatch.model.record import SymbolType, Visibility
from codebatch_workers.languages.jvm.names import read_java_names, read_kotlin_names, read_scala_names
from codebatch_workers.symbols.imported_names import PREFIX_CHARS_MAX, ImportedName, node_text
from codebatch_workers.symbols.language_symbols import LanguageSymbols, MarkRules, ParameterRules
from codebatch_workers.symbols.occurrences.inner_names import is_marked_name
from codebatch_workers.symbols.parameters_and_visibility import declaration_text, last_name


def _read_java_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the target and bound name of a Java import.

    `import a.b.C` has the target `a.b.C` and binds `C`. `import a.b.*` has the target `a.b.*` and binds nothing.
    """
    name = next((child for child in node.named_children if child.type in ("scoped_identifier", "identifier")), None)
    if name is None:
        return []
    if any(child.type == "asterisk" for child in node.named_children):
        return [ImportedName(f"{node_text(name, utf8)}.*", name, None)]
    return [ImportedName(node_text(name, utf8), name, name.child_by_field_name("name") or name)]


def _read_kotlin_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the target of a Kotlin import: `a.b.C` for `import a.b.C as D`, and `a.b.*` for `import a.b.*`."""
    name = next((child for child in node.named_children if child.type == "qualified_identifier"), None)
    if name is None:
        return []
    star = ".*" if node_text(node, utf8).endswith(".*") else ""
    return [ImportedName(f"{node_text(name, utf8)}{star}", name, None)]


def _read_scala_imports(node: Node, utf8: bytes) -> list[ImportedName]:
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


_IMPLICIT = re.compile(rb"\bimplicit\b")


def _read_java_parameter(node: Node, utf8: bytes) -> str:
    name = node.child_by_field_name("name")
    text = declaration_text(node, utf8)
    written = last_name(text if name is None else utf8[name.start_byte : name.end_byte])
    return written or text.decode("utf-8", "replace")


def _java_visibility(_name: str, symbol_type: SymbolType, around: str) -> Visibility:
    is_public = symbol_type in ("enum_member", "import", "module") or around == "interface"
    return "public" if is_public else "internal"


def _is_interpolated_name(node: Node, utf8: bytes, start: int, _end: int) -> bool:
    """Return whether the part is `name` in Kotlin's `"$name"`.

    At the start of a string, the grammar parses this as text.
    """
    return start > node.start_byte - 1 and utf8[start - 1 : start] == b"$" and utf8[start - 2 : start - 1] not in b"\\$"


def _read_implicit(node: Node) -> Iterator[str]:
    if node.type == "modifiers" and _IMPLICIT.search(node.text or b""):
        yield "implicit"


_ANONYMOUS_CLASSES = frozenset({"instance_expression", "object_creation_expression", "object_literal"})
_AROUND_BASES = re.compile(
    "annotated_type|applied_constructor_type|compound_type|constructor_invocation|delegation_specifiers?"
    "|explicit_delegation"
)


def _read_anonymous_class(node: Node) -> Iterator[str]:
    """Yield `new A` for a member of an anonymous class or object with the base `A`."""
    body = node.parent if node.parent is not None and node.parent.type in ("class_body", "template_body") else None
    owner = None if body is None else body.parent
    for child in owner.named_children if owner is not None and owner.type in _ANONYMOUS_CLASSES else ():
        if child != body:
            yield from _read_bases(child)


def _read_bases(node: Node) -> Iterator[str]:
    if _AROUND_BASES.fullmatch(node.type):
        for child in node.named_children:
            yield from _read_bases(child)
    elif node.type.endswith("_type") or node.type.endswith("type_identifier"):
        yield f"{ANONYMOUS_MARK}{re.split(rb'[<[]', node.text or b'')[0].decode('utf-8', 'replace').strip()}"


def _read_scala_marks(node: Node) -> Iterator[str]:
    if node.type == "given_definition":
        yield "given"
    yield from _read_anonymous_class(node)


# Marks that only describe a definition.
_DESCRIPTIONS = frozenset(
    b"allargsconstructor builder canignorereturnvalue checkreturnvalue composable contract data deprecated "
    b"documented equalsandhashcode functionalinterface generated inherited inline jvmfield jvminline jvmname "
    b"jvmoverloads jvmstatic noargsconstructor nonnull notnull nullable optin override parcelize "
    b"requiredargsconstructor retention safevarargs serializable slf4j suppress suppresswarnings tailrec target "
    b"throws tostring value visiblefortesting".split()
)
SYMBOLS = {
    "java": LanguageSymbols(
        marks=MarkRules(descriptions=_DESCRIPTIONS, read_around=_read_anonymous_class),
        parameters=ParameterRules(read_name=_read_java_parameter),
        visibility=_java_visibility,
        has_imports_without_calls=True,
        imports=_read_java_imports,
        used_names=read_java_names,
    ),
    "kotlin": LanguageSymbols(
        marks=MarkRules(descriptions=_DESCRIPTIONS, read_around=_read_anonymous_class),
        imports=_read_kotlin_imports,
        inner_names={"identifier": is_marked_name, "string_content": _is_interpolated_name},
        used_names=read_kotlin_names,
    ),
    "scala": LanguageSymbols(
        imports=_read_scala_imports,
        inner_names={"identifier": is_marked_name},
        marks=MarkRules(descriptions=_DESCRIPTIONS, read_before=_read_implicit, read_around=_read_scala_marks),
        outer_callees=frozenset({"generic_function"}),
        used_names=read_scala_names,
    ),
}
