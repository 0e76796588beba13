"""Locations of imports outside functions. Fingerprints leave them out, because equal imports cannot be merged.

Imports are the statements of each language that name other files or modules: `import`, `use`, `using`, `#include`,
`require`, `source`, `mod a;`, and exports of names of other files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tree_sitter import Node

from codebatch_workers.duplicates.language_duplicates import LanguageDuplicates, Span
from codebatch_workers.syntax.nodes import ancestors
from codebatch_workers.syntax.source import SourceFile

_NODE_WITH_FUNCTION = re.compile(r"function|method|closure|lambda|constructor|initializer")
# Imports that are calls, and statements that can contain one.
_NODE_WITH_CALL = re.compile(r"call|expression|\Anamespace_use")
# The nodes whose children are statements.
_CONTAINER_NODES = frozenset(
    (
        *("program", "chunk", "module", "body_statement", "block", "then", "begin", "begin_block"),
        *("statement_block", "declaration_list", "compound_statement", "colon_block"),
    )
)
# A call that imports, or that a compiler writes around one: `__importStar(require("a"))`.
_IMPORTING_CALL = re.compile(
    rb"\b(?:require\w*|import|autoload|x?pcall|_*(?:import|interop)\w*|File\.\w+|dirname)\s*\("
)
_END_OF_STATEMENT = re.compile(rb"[ \t]*;?")


def import_spans(file: SourceFile) -> list[Span]:
    """Return the locations of imports outside functions: offsets in `utf8`, ascending. Locations do not overlap."""
    rules = LanguageDuplicates.of(file.language)
    if rules.import_spans is not None:
        return list(rules.import_spans(file.utf8))
    spans: list[Span] = []
    for start, end in sorted({(node.start_byte, node.end_byte) for node in _iter_statements(file)}):
        following = _END_OF_STATEMENT.match(file.utf8, end)
        if not spans or start >= spans[-1][1]:
            spans.append((start, following.end() if following is not None else end))
    return spans


def _iter_statements(file: SourceFile) -> Iterator[Node]:
    captures, utf8 = file.captures, file.utf8
    for node in captures.get("import", ()):
        if _NODE_WITH_CALL.search(node.type):
            yield from _iter_calling_statements((node,), utf8)
        elif not _is_in_function(node):
            yield _import_declaration(node)
    for capture in ("source", "source.word"):
        yield from (node.parent for node in captures.get(capture, ()) if node.parent is not None)
    yield from _iter_calling_statements(captures.get("importer", ()), utf8)


def _text(node: Node, utf8: bytes) -> bytes:
    return utf8[node.start_byte : node.end_byte]


def _import_declaration(node: Node) -> Node:
    """Return the declaration that contains an import, with all imports in its brackets."""
    while node.parent is not None and node.parent.type.startswith("import"):
        node = node.parent
    return node


def _iter_calling_statements(imports: Iterable[Node], utf8: bytes) -> Iterator[Node]:
    """Yield the statements that contain the imports, and no other call or function."""
    for node in imports:
        statement = _enclosing_statement(node)
        text = _text(statement, utf8)
        is_import = b"=>" not in text and text.count(b"(") <= len(_IMPORTING_CALL.findall(text))
        if is_import and not _is_in_function(statement):
            yield statement


def _enclosing_statement(node: Node) -> Node:
    while node.parent is not None and node.parent.type not in _CONTAINER_NODES:
        node = node.parent
    return node


def _is_in_function(statement: Node) -> bool:
    return any(_NODE_WITH_FUNCTION.search(above.type) for above in ancestors(statement))
