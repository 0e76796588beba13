"""Patterns and rewrites of Lua."""

from __future__ import annotations

from codebatch_workers.syntax.patterns.language_patterns import NO_CONTEXT, LanguagePatterns, RuleExample

PATTERNS = {
    "lua": LanguagePatterns(
        example=RuleExample("print($$$)", "print is left in the code", "print(1)\n", "log(1)\n"),
        stand_ins=("{n}", "{n}()"),
        contexts=(NO_CONTEXT, ("return ", "")),
        blocks=frozenset({"chunk", "block"}),
        expressions=frozenset({"function_definition"}),
        has_parentheses=True,
    )
}
