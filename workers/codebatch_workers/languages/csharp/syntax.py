"""Syntax of C#."""

from __future__ import annotations

import re

from codebatch_workers.syntax.grammar_gaps.stand_ins import blanks_for
from codebatch_workers.syntax.language_syntax import LanguageSyntax, MigrationFramework
from codebatch_workers.syntax.names import names_by_field

_EXTENSION_BLOCK = re.compile(
    rb"^[ \t]*extension\s*(?:<[^<>;{}]*>)?\s*\([^(){};]*\)(?:[^(){};]|new\(\))*\{", re.MULTILINE
)
# A brace, or a comment or string, in which braces do not count.
_BRACE_OR_TEXT = re.compile(
    rb'//[^\n]*|/\*.*?\*/|"""+.*?"""+|\$?@"(?:[^"]|"")*"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'|[{}]', re.DOTALL
)


def _blank_extension_blocks(utf8: bytes) -> bytes:
    """Replace `extension(T x) {` and its closing brace by blanks. Its members then belong to the enclosing class."""
    if b"extension" not in utf8:
        return utf8
    text = None
    for match in _EXTENSION_BLOCK.finditer(utf8):
        end = _block_end(utf8, match.end())
        if end < 0:
            break
        text = text or bytearray(utf8)
        text[match.start() : match.end()] = blanks_for(match[0])
        text[end] = ord(" ")
    return utf8 if text is None else bytes(text)


def _block_end(utf8: bytes, start: int) -> int:
    """Return the offset of the brace that closes a block, or -1. `start` is the offset after its opening brace."""
    depth = 1
    for match in _BRACE_OR_TEXT.finditer(utf8, start):
        if match[0] in (b"{", b"}"):
            depth += 1 if match[0] == b"{" else -1
            if depth == 0:
                return match.start()
    return -1


SYNTAX = {
    "csharp": LanguageSyntax(
        is_approximate=True,
        queries=("csharp",),
        binding_queries=("csharp",),
        declared_names=names_by_field,
        name_marks=(b"@",),
        comments=("//",),
        migrations=(
            # Entity Framework, FluentMigrator.
            MigrationFramework(
                b"Migration",
                (
                    re.compile(rb"\bclass\s+\w+\s*:\s*(?:\w+\.)*\w*Migration\s*[,{\r\n]"),
                    re.compile(rb"\boverride\s+void\s+Up\s*\("),
                ),
            ),
        ),
        repair=_blank_extension_blocks,
        parameter_nodes=frozenset({"parameter"}),
    )
}
