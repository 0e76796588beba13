"""Patterns and rewrites of Swift."""

from __future__ import annotations

from codebatch_workers.syntax.patterns.language_patterns import CodeLiteral, LanguagePatterns, RuleExample
from codebatch_workers.syntax.patterns.literals import find_line_break

PATTERNS = {
    "swift": LanguagePatterns(
        example=RuleExample("print($$$)", "print is left in the code", "print(1)\n", "log(1)\n"),
        stand_ins=("{n}", "{n}: {N}", "_ {n}: {N}"),
        blocks=frozenset({"source_file", "statements", "class_body", "protocol_body"}),
        has_parentheses=True,
        literal=CodeLiteral("line_string_literal", find_line_break),
    )
}
