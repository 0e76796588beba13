"""The names that the imports of a file bind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from tree_sitter import Node

from codebatch_workers.symbols.file_exports import LANGUAGES_WITH_EXPORTS, file_exports
from codebatch_workers.symbols.imported_names import ImportedName, ImportsReader
from codebatch_workers.syntax.source import SourceFile


class LocalImport(msgspec.Struct, frozen=True):
    """A name that an import binds. `target` is the target of the import as written, as in `imports` edges.

    `local` is empty if all names of the target are imported. It is a chain for Python's `import a.b`. `member` is the
    name that the import takes from the module `target`. It is `*` for the module itself, and empty if the target can be
    a module or a name in a module. In JavaScript, it is a name that the module exports (`symbols/file_exports.py`), or
    a chain of names in the same file if there is no target. `start` is the offset of the local name.
    """

    local: str
    target: str
    member: str
    line: int
    start: int = -1


def local_imports(file: SourceFile, reader: ImportsReader | None) -> Sequence[LocalImport]:
    """Return the names that the imports of a file bind, in text order."""
    if file.language in LANGUAGES_WITH_EXPORTS:
        return tuple(
            LocalImport(imported.local, imported.module, imported.member, imported.line, imported.start)
            for imported in file_exports(file).imports
        )
    return () if reader is None else tuple(_iter_imports(file, reader))


def _go_import(statement: Node, imported: ImportedName, file: SourceFile, line: int) -> LocalImport:
    """Return the import of a package. `local` is empty if the package itself determines the name, and `.` for all."""
    name = statement.child_by_field_name("name")
    local = "" if name is None else file.utf8[name.start_byte : name.end_byte].decode("utf-8", "replace")
    return LocalImport(local, imported.target, "*", line, -1 if name is None else name.start_byte)


def _iter_imports(file: SourceFile, reader: ImportsReader) -> Iterator[LocalImport]:
    for statement in file.captures.get("import", ()):
        target = ""
        for imported in reader(statement, file.utf8):
            target = imported.target or target
            line = file.position(imported.node.start_byte)[0]
            if file.language == "go":
                yield _go_import(statement, imported, file, line)
            elif imported.bound is not None:
                is_inside = imported.is_module and imported.bound.end_byte <= imported.node.end_byte
                bound = imported.node if is_inside else imported.bound
                local = file.utf8[bound.start_byte : bound.end_byte].decode("utf-8", "replace")
                member = "*" if imported.is_module else ""
                yield LocalImport(local, target, member, line, imported.bound.start_byte)
            elif file.language == "php" and imported.node.type in ("name", "qualified_name"):
                local = target.rpartition("\\")[2]
                yield LocalImport(local, target, "", line, imported.node.end_byte - len(local.encode()))
            elif file.language in ("kotlin", "scala") and not target.endswith("*"):
                bound = _renamed(imported.node) or imported.node
                local = file.utf8[bound.start_byte : bound.end_byte].decode("utf-8", "replace").rpartition(".")[2]
                yield LocalImport(local, target, "", line, bound.end_byte - len(local.encode()))
            elif target.endswith(("*", "*;")):
                yield LocalImport("", target, "*", line)


def _renamed(imported: Node) -> Node | None:
    """Return the node of the local name if an import in Kotlin or Scala gives it: `C as D`, `C => D`."""
    following, parent = imported.next_named_sibling, imported.parent
    if parent is not None and parent.type.endswith("_renamed_identifier"):
        return parent.child_by_field_name("alias")
    return following if parent is not None and parent.type == "import" else None
