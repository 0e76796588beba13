"""Patterns and rewrites of JavaScript and TypeScript."""

from __future__ import annotations

import re

import msgspec

from codebatch_workers.syntax.patterns.language_patterns import (
    NO_CONTEXT,
    LanguagePatterns,
    RuleExample,
    StatementStart,
)

_JAVASCRIPT = LanguagePatterns(
    example=RuleExample("console.log($$$)", "console.log is left in the code", "console.log(1);\n", "logger.log(1);\n"),
    stand_ins=("{n}", '"{n}"', "case {n}:"),
    contexts=(NO_CONTEXT, ("class C {\n", "\n}")),
    blocks=frozenset({"program", "statement_block", "switch_case", "switch_default", "class_body"}),
    # An object would be read as a block, unless it is in parentheses.
    refused_changes={"arrow_function": frozenset({"object", "statement_block"})},
    has_parentheses=True,
    statement_start=StatementStart(
        re.compile(rb"\{|(?:async\s+)?function\b|class\b|let\s*\["),
        frozenset({"arrow_function", "export_statement", "expression_statement"}),
    ),
)
_TYPESCRIPT = msgspec.structs.replace(_JAVASCRIPT, contexts=(*_JAVASCRIPT.contexts, ("type T = ", "")))

PATTERNS = {"javascript": _JAVASCRIPT, "tsx": _TYPESCRIPT, "typescript": _TYPESCRIPT}
