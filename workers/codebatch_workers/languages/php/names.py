r"""The classes and functions that a PHP file uses.

A class is named as `Price`, `Shop\Price`, `\Shop\Price` or `namespace\Price`. A function is followed by `()`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tree_sitter import Node

from codebatch.model.record import Names, Symbol
from codebatch_workers.symbols.file_outline import FileOutline
from codebatch_workers.symbols.imported_names import node_text
from codebatch_workers.symbols.used_names import first_offsets, keep_first, local_variables, make_names, without_known
from codebatch_workers.syntax.source import SourceFile

_NAME = re.compile(rb"\\?[A-Za-z_\x80-\xff][\w\x80-\xff]*(?:\\[A-Za-z_\x80-\xff][\w\x80-\xff]*){0,15}\Z")
_CLASSES = frozenset({"class", "enum", "interface", "trait"})
_OWN_CLASS = frozenset({b"parent", b"self", b"static"})


def read_names(file: SourceFile, outline: FileOutline) -> Names | None:
    """Return the classes and functions that a file uses."""
    offsets = _used_classes_and_functions(file, outline.symbols)
    return make_names(file, without_known(file, offsets, frozenset()), local_variables(file))


def _used_classes_and_functions(file: SourceFile, symbols: Iterable[Symbol]) -> dict[bytes, int]:
    """Return the classes and functions that a PHP file uses, with the offset of the first use.

    Names that the file imports or defines are left out.
    """
    outermost = [symbol for symbol in symbols if not symbol.scope]
    functions = {symbol.name.lower().encode() for symbol in outermost if symbol.symbol_type == "function"}
    classes = {symbol.name.lower().encode() for symbol in outermost if symbol.symbol_type in _CLASSES}
    for statement in file.captures.get("import", ()):
        for kind, name in imported_names(statement, file.utf8):
            (functions if kind == "function" else classes).add(name)
    offsets: dict[bytes, int] = {}
    for text, start in first_offsets(file, "use", "base"):
        name = b"".join(text.split())
        if _NAME.match(name) and name.lower() not in classes and name.lower() not in _OWN_CLASS:
            keep_first(offsets, name, start)
    constructions = {node.start_byte for node in file.captures.get("use", ())}
    for node in file.captures.get("call", ()):
        if node.start_byte not in constructions:
            name = b"".join(file.utf8[node.start_byte : node.end_byte].split())
            if _NAME.match(name) and name.lower() not in functions:
                keep_first(offsets, name + b"()", node.start_byte)
    return offsets


def imported_names(statement: Node, utf8: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield each local name of a `use` statement in lower case, with `function`, `const` or nothing for a class."""
    if statement.type != "namespace_use_declaration":
        return
    kind = _import_kind(statement)
    for clause in (statement.child_by_field_name("body") or statement).named_children:
        if clause.type == "namespace_use_clause" and clause.named_child_count:
            alias = clause.child_by_field_name("alias") or clause.named_children[0]
            local = node_text(alias, utf8).rpartition("\\")[2].lower()
            yield kind or _import_kind(clause), local.encode()


def _import_kind(node: Node) -> str:
    return next((child.type for child in node.children if child.type in ("function", "const")), "")
