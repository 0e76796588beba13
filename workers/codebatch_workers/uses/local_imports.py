"""The names that the imports of a file bind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tree_sitter import Node

from codebatch_workers.symbols.imported_names import ImportedName, ImportsReader, LocalImport
from codebatch_workers.symbols.language_symbols import LanguageSymbols
from codebatch_workers.syntax.source import SourceFile

ImportBinder = Callable[[SourceFile, Node, ImportedName, str], LocalImport | None]
"""A function that returns the name that an import binds, given the statement and the target of the import."""


def local_imports(file: SourceFile, bind: ImportBinder | None = None) -> Sequence[LocalImport]:
    """Return the names that the imports of a file bind, in text order.

    `bind` returns the name that an import with a target binds, or None if the common rules apply.
    """
    rules = LanguageSymbols.of(file.language)
    if rules.exports is not None:
        return rules.exports(file).imports
    return () if rules.imports is None else tuple(_iter_imports(file, rules.imports, bind))


def _iter_imports(file: SourceFile, reader: ImportsReader, bind: ImportBinder | None) -> Iterator[LocalImport]:
    for statement in file.captures.get("import", ()):
        target = ""
        for imported in reader(statement, file.utf8):
            target = imported.target or target
            line = file.position(imported.node.start_byte)[0]
            special = None if bind is None else bind(file, statement, imported, target)
            if special is not None:
                yield special
            elif imported.bound is not None:
                is_inside = imported.is_module and imported.bound.end_byte <= imported.node.end_byte
                bound = imported.node if is_inside else imported.bound
                local = file.utf8[bound.start_byte : bound.end_byte].decode("utf-8", "replace")
                member = "*" if imported.is_module else ""
                yield LocalImport(local, target, member, line, imported.bound.start_byte)
            elif target.endswith(("*", "*;")):
                yield LocalImport("", target, "*", line)
