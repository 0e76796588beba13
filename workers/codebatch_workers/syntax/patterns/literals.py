"""Code inside string literals, in which the literal allows less than elsewhere.

Grammars accept the newest version of a language. Older versions accept less code in a string.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from codebatch_workers.syntax.patterns.edits import Edit, root_of, text_of
from codebatch_workers.syntax.python_versions import ANY_CODE_IN_STRINGS, PYTHON_CONTEXT
from codebatch_workers.syntax.source import SourceFile

_BRACKETS = re.compile(rb"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}")
_PREFIX = re.compile(rb"[a-zA-Z]*")


def literal_reason(file: SourceFile, edit: Edit) -> str | None:
    """Return why a string around an edit does not allow the new code, or None."""
    literal_type, find_forbidden = _LITERALS_BY_LANGUAGE.get(file.language, ("", _find_line_break))
    is_python = file.language == "python"
    if not literal_type or (is_python and file.contexts.get(PYTHON_CONTEXT) == ANY_CODE_IN_STRINGS):
        return None
    node = root_of(file).descendant_for_byte_range(edit.start, edit.end)
    while node is not None:
        if node.type == literal_type and node.start_byte < edit.start:
            forbidden = find_forbidden(text_of(file, edit.parts), file.utf8[node.start_byte : node.end_byte])
            if forbidden:
                until = " before Python 3.12" if is_python else ""
                return f"the string around the match must not contain {forbidden} there{until}"
        node = node.parent
    return None


def _find_in_f_string(code: bytes, literal: bytes) -> str:
    quote = literal[_PREFIX.match(literal).end() :][:3]  # type: ignore[union-attr]  # The pattern always matches.
    is_long = quote in (b'"""', b"'''")
    if (quote if is_long else quote[:1]) in code:
        return "its own quotation mark"
    if b"\\" in code:
        return "a backslash"
    if b"#" in code:
        return "a comment or `#`"
    return _find_line_break(code, b"" if is_long else literal)


def _find_line_break(code: bytes, literal: bytes) -> str:
    is_long = not literal or literal.startswith((b'"""', b"'''"))
    return "" if is_long or b"\n" not in code else "a line break"


def _find_in_csharp_string(code: bytes, literal: bytes) -> str:
    """A colon outside of brackets begins the format of the value."""
    outside, count = code, 1
    while count:
        outside, count = _BRACKETS.subn(b"", outside)
    return "a colon outside of parentheses" if b":" in outside else _find_line_break(code, literal)


def _find_in_backquotes(code: bytes, literal: bytes) -> str:
    return "a backslash or `" if literal.startswith(b"`") and (b"`" in code or b"\\" in code) else ""


_LITERALS_BY_LANGUAGE: Mapping[str, tuple[str, Callable[[bytes, bytes], str]]] = {
    "bash": ("command_substitution", _find_in_backquotes),
    "csharp": ("interpolated_string_expression", _find_in_csharp_string),
    "python": ("string", _find_in_f_string),
    "scala": ("interpolated_string", _find_line_break),
    "swift": ("line_string_literal", _find_line_break),
    "zsh": ("command_substitution", _find_in_backquotes),
}
"""The type of the nodes of string literals that may contain code, and the search for what they do not allow there.

The search gets the new code and the literal, and returns what is not allowed, or an empty text.
"""
