"""Macros on their own line before a declaration, macros between `class` and its name, and C++ modules.

The grammar takes such a macro for the type of the next declaration, and so misses a struct, enum or function. So blanks
of the same length replace the macro. The macro must be in capitals, and between complete declarations. It must not be
the return type of a function on the next line. Blanks also replace declarations and imports of C++ modules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from codebatch_workers.syntax.grammar_gaps.stand_ins import blanks_for

_MACRO_ONLY_LINE = re.compile(rb"\n[ \t]*([A-Z_][A-Z0-9_]{2,})[ \t]*(?=\n)")
# Text that can be between a macro and a declaration: blank lines, comments, and directives with their continuation
# lines.
_TEXT_WITHOUT_CODE = re.compile(
    rb"(?:\s|#[^\n\\]*(?:\\\n[^\n\\]*|\\[^\n][^\n\\]*)*(?=\n|\Z)|//[^\n]*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/){0,200}"
)
_MACRO_LINE = re.compile(rb"[A-Z_][A-Z0-9_]{2,}[ \t]*\n")
_DECLARATION_START = re.compile(
    rb"\Z|\}|(?:class|const|enum|extern|inline|namespace|static|struct|template|typedef|union|using)\b"
    rb"|(?:public|private|protected|signals)\b[^;{}()\n]*:"
    rb"|[A-Za-z_]\w*(?:[ \t]+|[ \t]*\*+[ \t]*)[A-Za-z_]\w*|[A-Z_]\w*\([^()\n]*\)\s*[A-Za-z_*]"
)
_NO_CODE_LINE = re.compile(rb"[ \t]*(?:#|//|/\*|\*|\r?\Z)|[^\n]*\*/[ \t\r]*\Z")
_LINES_BEFORE_MAX = 60
_MACRO_LINES_MAX = 8

_BEFORE_CLASS_NAME = re.compile(
    rb"(?:class|struct|union)[ \t]+([A-Z_][A-Z0-9_]{2,}(?:[ \t]*\([^()\n]*\))?)"
    rb"(?=[ \t]+[A-Za-z_]\w*(?:::\w+)*(?:[ \t]*<[^<>;{}]*>)?\s*(?:final\b\s*)?(?:\{|:[^:]))"
)
_MODULE_LINE = re.compile(
    rb"^(?:(?:export[ \t]+)?module(?:[ \t]+[\w.:]+|[ \t]*:[ \t]*private)?[ \t]*(?:\[\[[^;\n]*\]\][ \t]*)?;"
    rb"|(?:export[ \t]+)?import[ \t]*(?:[ \t][\w.:]+|:[\w.]+|<[^<>\n]*>|\"[^\"\n]*\")[ \t]*;)",
    re.MULTILINE,
)
_EXPORT_KEYWORD = re.compile(rb"^[ \t]*(export)(?=[ \t\n]*(?!template\b)[\w\[{:])", re.MULTILINE)


# A `#define` and its continuation lines. A line continues after a backslash, and within a comment.
_DEFINE_DIRECTIVE = re.compile(
    rb"define[ \t]+\w[^\n\\/\"]*"
    rb"(?:(?:\\(?:\r\n|.)|/\*.{0,2000}?\*/|//[^\n\\]*|\"(?:[^\"\\\n]|\\.)*\"|[/\"])[^\n\\/\"]*)*",
    re.DOTALL,
)
_TEXT_OR_COMMENT = re.compile(rb"\"(?:[^\"\\\n]|\\.)*\"|//[^\n\\]*|(/\*.*?\*/)", re.DOTALL)
# All characters, except for a backslash at the end of a line and white space.
_BLANKED_CHARACTER = re.compile(rb"[^\\\s]|\\(?!\r?\n)")
_UNCONTINUED_LINE_END = re.compile(rb"[^\\\r](?=\r?\n)")


def blank_inner_comments(utf8: bytes) -> bytes:
    """Replace comments within macro bodies by blanks. In string literals there, replace `/*` by blanks.

    The grammar ends a directive at such a comment. Each line that ends within the comment gets a backslash, so that the
    directive continues.
    """
    if b"/*" not in utf8:
        return utf8
    text = None
    for match in _DEFINE_DIRECTIVE.finditer(utf8):
        for part in _TEXT_OR_COMMENT.finditer(match[0]) if b"/*" in match[0] else ():
            if not part[1]:
                stand_in = part[0].replace(b"/*", b"  ") if part[0].startswith(b'"') else part[0]
            elif match[0][part.end() :].strip(b" \t\r\n\\"):
                stand_in = _BLANKED_CHARACTER.sub(b" ", _UNCONTINUED_LINE_END.sub(b"\\\\", part[1]))
            else:
                continue
            text = text or bytearray(utf8)
            start = match.start() + part.start()
            text[start : start + len(stand_in)] = stand_in
    return utf8 if text is None else bytes(text)


def blank_module_lines(utf8: bytes) -> bytes:
    """Replace declarations and imports of C++ modules by blanks. In a file that has any, also replace `export`."""
    if b"module" not in utf8 and b"import" not in utf8:
        return utf8
    matches = list(_MODULE_LINE.finditer(utf8))
    if not matches:
        return utf8
    spans = [match.span() for match in matches] + [match.span(1) for match in _EXPORT_KEYWORD.finditer(utf8)]
    return _blank_spans(utf8, spans)


def blank_class_macros(utf8: bytes) -> bytes:
    """Replace each macro between the keyword `class`, `struct` or `union` and the name of the type by blanks."""
    return _blank_spans(utf8, [match.span(1) for match in _BEFORE_CLASS_NAME.finditer(utf8)])


def _blank_spans(utf8: bytes, spans: Sequence[tuple[int, int]]) -> bytes:
    if not spans:
        return utf8
    text = bytearray(utf8)
    for start, end in spans:
        text[start:end] = blanks_for(utf8[start:end])
    return bytes(text)


def blank_macro_lines(utf8: bytes) -> bytes:
    """Replace each macro on its own line before a declaration by blanks."""
    text = None
    for match in _MACRO_ONLY_LINE.finditer(b"\n" + utf8):
        start, end = match.start(1) - 1, match.end(1) - 1
        start_of_next = _declaration_start(utf8, end)
        if start_of_next < 0 or not _is_after_declaration(
            text or utf8, match.start() - 1, utf8[start_of_next : start_of_next + 1]
        ):
            continue
        text = text or bytearray(utf8)
        text[start:end] = b" " * (end - start)
    return utf8 if text is None else bytes(text)


def _declaration_start(utf8: bytes, end: int) -> int:
    """Return the start of the declaration after `end`. Macros on their own lines before the declaration are skipped.

    Return -1 if there is no declaration.
    """
    for _ in range(_MACRO_LINES_MAX):
        between = _TEXT_WITHOUT_CODE.match(utf8, end)
        start = between.end() if between else end
        macro = _MACRO_LINE.match(utf8, start)
        if macro is None:
            return start if _DECLARATION_START.match(utf8, start) else -1
        end = macro.end()
    return -1


def _is_after_declaration(text: bytes | bytearray, end: int, first_byte_of_next: bytes) -> bool:
    """Return whether the code before a line ends a declaration, or opens a block that is not empty.

    `end` is the end of the line before. `first_byte_of_next` is the first byte of the next declaration.
    """
    for number in range(_LINES_BEFORE_MAX):
        if end <= 0:
            return True
        start = text.rfind(b"\n", 0, end) + 1
        line = bytes(text[start:end])
        if number == 0 and line.endswith(b"\\"):
            return False  # The line before continues here, so this line is part of a macro body.
        is_continued = text[max(0, start - 2) : start] == b"\\\n"
        if not (is_continued or line.endswith(b"\\") or _NO_CODE_LINE.match(line)):
            last = line.rstrip()[-1:]
            return last in (b";", b"}") or (last == b"{" and first_byte_of_next != b"}")
        end = start - 1
    return False
