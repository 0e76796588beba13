"""Patterns and rewrites of Rust."""

from __future__ import annotations

import re

from codebatch_workers.syntax.patterns.language_patterns import (
    NO_CONTEXT,
    LanguagePatterns,
    RuleExample,
    StatementStart,
)

PATTERNS = {
    "rust": LanguagePatterns(
        example=RuleExample(
            "$X.unwrap()", "`{X}` is unwrapped", "fn f() { a.unwrap(); }\n", "fn f() { a.unwrap_or(1); }\n"
        ),
        stand_ins=("{n}", "{n};", "{n}: {N}", "{n} => {n},", "fn {n}() {}"),
        contexts=(NO_CONTEXT, ("", ";"), ("fn f() {\n", "\n}"), ("impl C {\n", "\n}"), ("type T = ", ";")),
        blocks=frozenset({"source_file", "block", "declaration_list"}),
        has_parentheses=True,
        # A block may be a statement. An operation cannot begin with it.
        statement_start=StatementStart(
            re.compile(rb"\{|(?:for|if|loop|match|unsafe|while)\b"),
            frozenset({"block", "expression_statement"}),
            is_statement=True,
        ),
    )
}
