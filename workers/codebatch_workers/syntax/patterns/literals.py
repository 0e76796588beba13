"""Code inside string literals, in which the literal allows less than elsewhere.

Grammars accept the newest version of a language. Older versions accept less code in a string.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tree_sitter import Node

from codebatch_workers.syntax.patterns.edits import Span, root_of
from codebatch_workers.syntax.patterns.language_patterns import LanguagePatterns
from codebatch_workers.syntax.source import SourceFile

_BRACKETS = re.compile(rb"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}")


def literal_reason(file: SourceFile, span: Span, code: bytes) -> str | None:
    """Return why a string around a range of a file does not allow code there, or None."""
    literal = LanguagePatterns.of(file.language).literal
    node: Node | None = None if literal is None else root_of(file).descendant_for_byte_range(*span)
    if literal is None or node is None:
        return None
    is_code = literal.text_types is not None and node.type not in literal.text_types
    while node is not None:
        is_code = is_code or node.type.startswith("interpol")
        if node.type == literal.node_type and node.start_byte < span[0] and is_code:
            forbidden = literal.find_forbidden(code, file.utf8[node.start_byte : node.end_byte], file.contexts)
            if forbidden:
                return f"the string around the match must not contain {forbidden}"
        node = node.parent
    return None


def ends_in_heredoc(file: SourceFile, offset: int) -> bool:
    """Return whether the last line of a heredoc ends at an offset. Grammars accept code after it, shells do not."""
    node = root_of(file).descendant_for_byte_range(max(offset - 1, 0), offset)
    return node is not None and node.type == "heredoc_end"


def without_brackets(code: bytes) -> bytes:
    """Return code without everything in brackets."""
    count = 1
    while count:
        code, count = _BRACKETS.subn(b"", code)
    return code


def find_line_break(code: bytes, literal: bytes, _contexts: Mapping[str, bytes]) -> str:
    """Return a description of a line break in code, if the literal does not allow it, or an empty text."""
    is_long = not literal or literal.startswith((b'"""', b"'''"))
    return "" if is_long or b"\n" not in code else "a line break there"
