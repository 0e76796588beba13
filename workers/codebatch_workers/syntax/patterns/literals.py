"""Code inside string literals, in which the literal allows less than elsewhere.

Grammars accept the newest version of a language. Older versions accept less code in a string.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tree_sitter import Node

from codebatch_workers.syntax.patterns.edits import Span, root_of
from codebatch_workers.syntax.python_versions import ANY_CODE_IN_STRINGS, PYTHON_CONTEXT
from codebatch_workers.syntax.source import SourceFile

_BRACKETS = re.compile(rb"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}")
_SUBSTITUTION = "command_substitution"
_PHP_STRING = "encapsed_string"
_PHP_VARIABLE = re.compile(rb"\$\w+(?:(?:\?->|->|::)\$?\w+)*")
_WALRUS = "`:=` outside of parentheses"
_PREFIX = re.compile(rb"[a-zA-Z]*")


def literal_reason(file: SourceFile, span: Span, code: bytes) -> str | None:
    """Return why a string around a range of a file does not allow code there, or None."""
    literal_type, find_forbidden = _LITERALS_BY_LANGUAGE.get(file.language, ("", _find_line_break))
    if not literal_type:
        return None
    is_python = file.language == "python"
    if is_python and file.contexts.get(PYTHON_CONTEXT) == ANY_CODE_IN_STRINGS:
        find_forbidden = _find_walrus
    node: Node | None = root_of(file).descendant_for_byte_range(*span)
    if node is None:
        return None
    is_code = literal_type == _SUBSTITUTION or (literal_type == _PHP_STRING and node.type != "string_content")
    while node is not None:
        is_code = is_code or node.type.startswith("interpol")
        if node.type == literal_type and node.start_byte < span[0] and is_code:
            forbidden = find_forbidden(code, file.utf8[node.start_byte : node.end_byte])
            if forbidden:
                until = " before Python 3.12" if is_python and forbidden != _WALRUS else ""
                return f"the string around the match must not contain {forbidden} there{until}"
        node = node.parent
    return None


def ends_in_heredoc(file: SourceFile, offset: int) -> bool:
    """Return whether the last line of a heredoc ends at an offset. Grammars accept code after it, shells do not."""
    node = root_of(file).descendant_for_byte_range(max(offset - 1, 0), offset)
    return node is not None and node.type == "heredoc_end"


def _find_walrus(code: bytes, _: bytes = b"") -> str:
    """In an f-string, `:=` begins the format of the value."""
    return _WALRUS if b":=" in _without_brackets(code) else ""


def _without_brackets(code: bytes) -> bytes:
    count = 1
    while count:
        code, count = _BRACKETS.subn(b"", code)
    return code


def _find_in_f_string(code: bytes, literal: bytes) -> str:
    quote = literal[_PREFIX.match(literal).end() :][:3]  # type: ignore[union-attr]  # The pattern always matches.
    is_long = quote in (b'"""', b"'''")
    if (quote if is_long else quote[:1]) in code:
        return "its own quotation mark"
    if b"\\" in code:
        return "a backslash"
    if b"#" in code:
        return "a comment or `#`"
    return _find_walrus(code) or _find_line_break(code, b"" if is_long else literal)


def _find_line_break(code: bytes, literal: bytes) -> str:
    is_long = not literal or literal.startswith((b'"""', b"'''"))
    return "" if is_long or b"\n" not in code else "a line break"


def _find_in_csharp_string(code: bytes, literal: bytes) -> str:
    """A colon outside of brackets begins the format of the value."""
    return "a colon outside of parentheses" if b":" in _without_brackets(code) else _find_line_break(code, literal)


def _find_in_backquotes(code: bytes, literal: bytes) -> str:
    return "a backslash or `" if literal.startswith(b"`") and (b"`" in code or b"\\" in code) else ""


def _find_in_php_string(code: bytes, _: bytes) -> str:
    is_variable = _PHP_VARIABLE.fullmatch(_without_brackets(code)) is not None
    return "" if is_variable else "an expression other than a variable"


_LITERALS_BY_LANGUAGE: Mapping[str, tuple[str, Callable[[bytes, bytes], str]]] = {
    "bash": (_SUBSTITUTION, _find_in_backquotes),
    "csharp": ("interpolated_string_expression", _find_in_csharp_string),
    "php": (_PHP_STRING, _find_in_php_string),
    "python": ("string", _find_in_f_string),
    "scala": ("interpolated_string", _find_line_break),
    "swift": ("line_string_literal", _find_line_break),
    "zsh": (_SUBSTITUTION, _find_in_backquotes),
}
"""The type of the nodes of string literals that may contain code, and the search for what they do not allow there.

The search gets the new code and the literal, and returns what is not allowed, or an empty text.
"""
