"""Locations of imports outside functions. Fingerprints leave them out, because equal imports cannot be merged.

Imports are the statements of each language that name other files or modules: `import`, `use`, `using`, `#include`,
`require`, `source`, `mod a;`, and exports of names of other files. In C, conditionals that contain nothing but includes
are left out too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tree_sitter import Node

from codebatch_workers.syntax.source import SourceFile

Span = tuple[int, int]

_NODE_WITH_FUNCTION = re.compile(r"function|method|closure|lambda|constructor|initializer")
# The nodes whose children are statements.
_CONTAINER_NODES = frozenset(
    (
        *("program", "chunk", "module", "body_statement", "block", "then", "begin", "begin_block"),
        *("statement_block", "declaration_list", "compound_statement", "colon_block"),
    )
)
_IMPORTERS = (b"require", b"import")
_SOURCE_COMMANDS = (b"source", b".")
# A call that imports, or that a compiler writes around one: `__importStar(require("a"))`.
_IMPORTING_CALL = re.compile(
    rb"\b(?:require\w*|import|autoload|x?pcall|_*(?:import|interop)\w*|File\.\w+|dirname)\s*\("
)
_END_OF_STATEMENT = re.compile(rb"[ \t]*;?")

_C_DIRECTIVE = re.compile(rb"^[ \t]*#[ \t]*([a-z_]+)(?:[^\\\n]|\\\r?\n|\\.)*", re.MULTILINE)
_C_COMMENT_AFTER = re.compile(rb"(?<!/)/\*(?![^\n]*\*/)")
_C_BLANKS = re.compile(rb"(?:\s|//[^\n]*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)*")
_C_INCLUDES = frozenset((b"include", b"import", b"include_next"))
_C_CONDITIONS = frozenset((b"if", b"ifdef", b"ifndef"))
_C_ARMS = frozenset((b"elif", b"elifdef", b"elifndef", b"else"))


def import_spans(file: SourceFile) -> list[Span]:
    """Return the locations of imports outside functions: offsets in `utf8`, ascending. Locations do not overlap."""
    if file.syntax.has_macros:
        return sorted(_iter_c_spans(file.utf8)) if b"include" in file.utf8 or b"import" in file.utf8 else []
    spans: list[Span] = []
    for start, end in sorted({(node.start_byte, node.end_byte) for node in _iter_statements(file)}):
        following = _END_OF_STATEMENT.match(file.utf8, end)
        if not spans or start >= spans[-1][1]:
            spans.append((start, following.end() if following is not None else end))
    return spans


def _iter_statements(file: SourceFile) -> Iterator[Node]:
    captures, utf8 = file.captures, file.utf8
    match file.language:
        case "javascript" | "tsx" | "typescript":
            yield from captures.get("import", ())
            for node in captures.get("source", ()):
                if node.parent is not None and node.parent.type == "export_statement":
                    yield node.parent
            importers = captures.get("importer", ())
            named = (node for node in importers if utf8[node.start_byte : node.end_byte] in _IMPORTERS)
            yield from _iter_calling_statements(named, utf8)
        case "lua" | "php" | "ruby":
            yield from _iter_calling_statements(captures.get("import", ()), utf8)
        case "bash" | "zsh":
            for node in captures.get("command", ()):
                if utf8[node.start_byte : node.end_byte] in _SOURCE_COMMANDS and node.parent is not None:
                    yield node.parent
        case "go":
            yield from map(_import_declaration, captures.get("import", ()))
        case _:
            yield from (node for node in captures.get("import", ()) if not _is_in_function(node))


def _iter_calling_statements(imports: Iterable[Node], utf8: bytes) -> Iterator[Node]:
    """Yield the statements that contain the imports, and no other call or function."""
    for node in imports:
        statement = _enclosing_statement(node)
        text = utf8[statement.start_byte : statement.end_byte]
        is_import = b"=>" not in text and text.count(b"(") <= len(_IMPORTING_CALL.findall(text))
        if is_import and not _is_in_function(statement):
            yield statement


def _import_declaration(node: Node) -> Node:
    """Return the declaration in Go that contains an import, with all imports in its brackets."""
    while node.parent is not None and node.type != "import_declaration":
        node = node.parent
    return node


def _enclosing_statement(node: Node) -> Node:
    while node.parent is not None and node.parent.type not in _CONTAINER_NODES:
        node = node.parent
    return node


def _is_in_function(statement: Node) -> bool:
    above = statement.parent
    while above is not None:
        if _NODE_WITH_FUNCTION.search(above.type):
            return True
        above = above.parent
    return False


class _Conditional:
    """An open `#if`: the locations of its directives, and what it contains."""

    def __init__(self, directive: Span) -> None:
        self.directives = [directive]
        self.has_include = False
        self.has_other_code = False


def _iter_c_spans(utf8: bytes) -> Iterator[Span]:
    opened: list[_Conditional] = []
    position = 0
    for match in _C_DIRECTIVE.finditer(utf8):
        blanks = _C_BLANKS.match(utf8, position)
        # A comment after the directive can extend over more lines.
        end = match.end() if (comment := _C_COMMENT_AFTER.search(match[0])) is None else match.start() + comment.start()
        position, name, span = end, match[1], (match.start(), end)
        if opened and (blanks is None or blanks.end() < match.start()):
            opened[-1].has_other_code = True
        if name in _C_INCLUDES:
            yield span
            if opened:
                opened[-1].has_include = True
        elif name in _C_CONDITIONS:
            opened.append(_Conditional(span))
        elif name in _C_ARMS and opened:
            opened[-1].directives.append(span)
        elif name == b"endif" and opened:
            conditional = opened.pop()
            if conditional.has_include and not conditional.has_other_code:
                yield from (*conditional.directives, span)
            if opened:
                opened[-1].has_include |= conditional.has_include
                opened[-1].has_other_code |= conditional.has_other_code or not conditional.has_include
        elif opened:
            opened[-1].has_other_code = True
