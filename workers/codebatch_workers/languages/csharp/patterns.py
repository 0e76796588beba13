"""Patterns and rewrites of C#."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.syntax.patterns.language_patterns import NO_CONTEXT, CodeLiteral, LanguagePatterns, RuleExample
from codebatch_workers.syntax.patterns.literals import find_line_break, without_brackets


def _find_forbidden(code: bytes, literal: bytes, contexts: Mapping[str, bytes]) -> str:
    """A colon outside of brackets begins the format of the value."""
    if b":" in without_brackets(code):
        return "a colon outside of parentheses there"
    return find_line_break(code, literal, contexts)


PATTERNS = {
    "csharp": LanguagePatterns(
        example=RuleExample(
            "Console.WriteLine($$$)",
            "Console.WriteLine is left in the code",
            "class C { void M() { Console.WriteLine(1); } }\n",
            "class C { void M() { Log.WriteLine(1); } }\n",
        ),
        stand_ins=("{n}", "{n};", "{N} {n}", "{N} {n};"),
        contexts=(NO_CONTEXT, ("", ";"), ("class C {\n", "\n}")),
        blocks=frozenset({"compilation_unit", "block", "switch_section", "declaration_list"}),
        expressions=frozenset({"local_declaration_statement", "variable_declaration"}),
        refused_changes={"lambda_expression": frozenset({"block"})},
        has_parentheses=True,
        literal=CodeLiteral("interpolated_string_expression", _find_forbidden),
    )
}
