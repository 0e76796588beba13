"""Valid C# that the grammar does not support: C# 13 and 14, and contextual keywords as names."""

from __future__ import annotations

import re

from codebatch_workers.syntax.grammar_gaps.stand_ins import blanks_for, make_gap, make_gaps, name_for, padded_text
from codebatch_workers.syntax.language_gaps import GapFinder, LanguageGaps

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


_GAPS: tuple[GapFinder, ...] = (
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

GAPS = {"csharp": LanguageGaps(finders=_GAPS)}
