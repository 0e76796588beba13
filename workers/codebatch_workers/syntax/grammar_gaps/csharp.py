"""Valid C# that the grammar does not support: C# 13 and 14, and contextual keywords as names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codebatch_workers.syntax.grammar_gaps.stand_ins import (
    GapFinder,
    blanks_for,
    make_gap,
    make_gaps,
    name_for,
    padded_text,
)

_EXTENSION_BLOCK = re.compile(
    rb"^[ \t]*extension\s*(?:<[^<>;{}]*>)?\s*\([^(){};]*\)(?:[^(){};]|new\(\))*\{", re.MULTILINE
)
# A brace, or a comment or string, in which braces do not count.
_BRACE_OR_TEXT = re.compile(
    rb'//[^\n]*|/\*.*?\*/|"""+.*?"""+|\$?@"(?:[^"]|"")*"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'|[{}]', re.DOTALL
)
_ASSIGNMENT = rb"\s*(?:[-+*/|&^]|\?\?|<<|>>)?=[^=>]"

# The lines of a conditional that contains no other conditional.
_LINES_WITHOUT_CONDITIONAL = rb"(?:(?![ \t]*#[ \t]*(?:if|elif|else|endif)\b)[^\n]*\n)*"
_WHOLE_CONDITIONAL = (
    rb"^([ \t]*#[ \t]*if\b[^\n]*\n%s(?:[ \t]*#[ \t]*(?:elif|else)\b[^\n]*\n%s)*[ \t]*#[ \t]*endif\b[^\n]*)$"
    % (_LINES_WITHOUT_CONDITIONAL, _LINES_WITHOUT_CONDITIONAL)
)
_FALSE_CONDITION = re.compile(rb"[ \t]*#[ \t]*if[ \t]+(?:false|0)\b")
_ARM_LINES = re.compile(rb"[^\n]*\n(%s)" % _LINES_WITHOUT_CONDITIONAL)


def _first_arm(text: bytes) -> bytes:
    arm = _ARM_LINES.match(text)
    start, end = arm.span(1) if arm and not _FALSE_CONDITION.match(text) else (0, 0)
    return blanks_for(text[:start]) + text[start:end] + blanks_for(text[end:])


CSHARP_GAPS: tuple[GapFinder, ...] = (
    *make_gaps(
        name_for,
        rb"\b(async)(?=\s*(?:[,;)=?:.\]]|&&|\|\|))",
        rb"\[\s*(assembly|event|field|method|module|param|property|return|type|typevar)(?=\s*[,\].(])",
    ),
    *make_gaps(
        blanks_for,
        # `a?[i] = b`, `a?.b = c`.
        rb"[\w)\]]\s*(\?)(?=\[[^\[\]]*\]%s)" % _ASSIGNMENT,
        rb"[\w)\]]\s*(\?)(?=\.[\w.\[\]]+%s)" % _ASSIGNMENT,
        rb"\boperator\s*(?:checked\s*)?(?:[-+*/%&|^]|<<|>>>?)(=)",
        rb"[(,]\s*(ref|out|in|scoped|params)(?=\s+\w+\s*[,)])",
        rb"[(,{;]\s*(scoped)(?=\s+[\w<>.]+\s+\w)",
        # Without a replacement, `a = *(T*)b` is parsed as a product.
        rb"(?:[=(,?:;{})]|\breturn\b)\s*(\*)(?=\(+[\w.]+\*+\))",
        rb"^([ \t]*#[ \t]*pragma\b[^\n]*)$",
        rb"^(#[:!][^\n]*)$",
        # A pattern after `..`.
        rb"[\[,]\s*(\.\.)(?=\s*(?:var\b|not\b|[{A-Z(\[]))",
    ),
    make_gap(rb"\[\s*(\.\.)(?=\s*\])", padded_text(b"_")),
    # A conditional that splits a declaration or a statement. Its first arm stays.
    make_gap(_WHOLE_CONDITIONAL, _first_arm, needs=(b"#",)),
    make_gap(rb"\b(allows\s+ref\s+struct)\b", padded_text(b"class")),
)


def blank_extension_blocks(utf8: bytes) -> bytes:
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
    for brace in _iter_braces(utf8, start):
        depth += 1 if utf8[brace] == ord("{") else -1
        if depth == 0:
            return brace
    return -1


def _iter_braces(utf8: bytes, start: int) -> Iterator[int]:
    for match in _BRACE_OR_TEXT.finditer(utf8, start):
        if match[0] in (b"{", b"}"):
            yield match.start()
