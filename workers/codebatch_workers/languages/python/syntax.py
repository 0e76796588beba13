"""Syntax of Python."""

from __future__ import annotations

import re
from codecs import BOM_UTF8

from tree_sitter import Node

from codebatch.model.record import SymbolType
from codebatch_workers.languages.python.type_calls import replace_type_calls
from codebatch_workers.syntax.language_syntax import LanguageSyntax, MigrationFramework, TemplateMarks
from codebatch_workers.syntax.names import DeclaredName, identifier_names, names_by_field, plain_name

_TARGET_NODES = frozenset({"pattern_list", "tuple_pattern", "list_pattern", "list_splat_pattern", "as_pattern_target"})


def _declared_names(node: Node, symbol_type: SymbolType, utf8: bytes) -> list[DeclaredName]:
    """Return the name of a Python definition or `type` statement. For an assignment, return all names in its target."""
    if symbol_type == "type":
        left = node.child_by_field_name("left")
        while left is not None and left.type in ("type", "generic_type"):
            left = left.named_child(0)
        return plain_name(left, "type") if left is not None and left.type == "identifier" else []
    if symbol_type == "variable":
        return identifier_names(node, symbol_type, _TARGET_NODES, frozenset({"identifier"}))
    return names_by_field(node, symbol_type, utf8)


_UNREAD_ENCODINGS = ("utf-16", "utf-32")


def _find_invalid_bytes(encoding: str, utf8: bytes) -> tuple[int, str] | None:
    """Return why Python refuses to read a text: UTF-16, UTF-32, or NUL characters."""
    if encoding.startswith(_UNREAD_ENCODINGS):
        return 0, f"Python does not support source files in {encoding.upper()}"
    if utf8.startswith(BOM_UTF8):
        return 0, "Python does not accept a second byte order mark"
    offset = utf8.find(b"\0")
    return None if offset < 0 else (offset, "Python does not accept NUL characters")


SYNTAX = {
    "python": LanguageSyntax(
        has_exact_parser=True,
        find_invalid_bytes=_find_invalid_bytes,
        requires_utf8=True,
        queries=("python",),
        binding_queries=("python",),
        declared_names=_declared_names,
        reserved_words=frozenset(
            b"False None True and as assert async await break class continue def del elif else except finally for from "
            b"global if import in is lambda nonlocal not or pass raise return try while with yield".split()
        ),
        comments=("#",),
        migrations=(
            # Django, South.
            MigrationFramework(b"Migration(", (re.compile(rb"(?m)^class Migration\((?:\w+\.)*\w*Migration\b"),)),
            # Alembic.
            MigrationFramework(
                b"down_revision",
                (re.compile(rb"(?m)^revision\b[^\n=]*="), re.compile(rb"(?m)^down_revision\b[^\n=]*=")),
            ),
        ),
        has_encoding_comments=True,
        repair_parsed=replace_type_calls,
        template_marks=TemplateMarks(are_names=True),
        parameter_nodes=frozenset(
            {
                "default_parameter",
                "dictionary_splat_pattern",
                "identifier",
                "list_splat_pattern",
                "typed_default_parameter",
                "typed_parameter",
            }
        ),
    )
}
