"""Syntax of Go."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from codebatch.model.record import SymbolType
from codebatch_workers.syntax.language_syntax import LanguageSyntax, MigrationFramework, TemplateMarks, UnseenError
from codebatch_workers.syntax.names import DeclaredName, plain_name

_TOP_LEVEL_NODES = frozenset(
    {
        "comment",
        "const_declaration",
        "empty_statement",
        "function_declaration",
        "import_declaration",
        "method_declaration",
        "package_clause",
        "type_declaration",
        "var_declaration",
    }
)


def _find_code_outside_functions(root: Node, _utf8: bytes) -> Iterator[UnseenError]:
    nodes = [node for node in root.named_children if node.type != "comment"]
    if nodes and nodes[0].type != "package_clause":
        yield UnseenError(nodes[0].start_byte, nodes[0].end_byte, "missing package clause")
        return
    for node in nodes:
        if node.type not in _TOP_LEVEL_NODES:
            yield UnseenError(node.start_byte, node.end_byte, "statement outside of a function")


_METHOD_RECEIVER = re.compile(rb"\(\s*(?:[\w\x80-\xff]+\s+)?\*?\s*([\w\x80-\xff]+)")


def _declared_names(node: Node, symbol_type: SymbolType, utf8: bytes) -> list[DeclaredName]:
    """Return the name of a Go definition. The owner of a method is the type of its receiver."""
    owner = ""
    if node.type == "method_declaration":
        receiver = node.child_by_field_name("receiver")
        match = _METHOD_RECEIVER.match(utf8, receiver.start_byte, receiver.end_byte) if receiver is not None else None
        owner = match[1].decode("utf-8", "replace") if match else ""
    return plain_name(node.child_by_field_name("name"), symbol_type, owner)


SYNTAX = {
    "go": LanguageSyntax(
        requires_utf8=True,
        queries=("go",),
        binding_queries=("go",),
        declared_names=_declared_names,
        reserved_words=frozenset(
            b"break case chan const continue default defer else fallthrough for func go goto if import interface map "
            b"package range return select struct switch type var".split()
        ),
        comments=("//",),
        migrations=(MigrationFramework(b"goose.AddMigration"),),
        unseen_errors=_find_code_outside_functions,
        template_marks=TemplateMarks(are_names=True),
    )
}
