"""Patterns and rewrites of C and C++."""

from __future__ import annotations

import msgspec

from codebatch_workers.syntax.patterns.language_patterns import NO_CONTEXT, LanguagePatterns, RuleExample

_C = LanguagePatterns(
    example=RuleExample(
        "strcpy($TO, $FROM)",
        "strcpy to `{TO}` without a bound",
        "void f(char *a, char *b) { strcpy(a, b); }\n",
        "void f(char *a, char *b) { strncpy(a, b, 8); }\n",
    ),
    stand_ins=("{n}", "{n};", "{N} {n}", "{N} {n};"),
    # As a whole file, `f(x)` would be a type. So it is first parsed in a function.
    contexts=(("void f(void) {\n", ";\n}"), NO_CONTEXT),
    blocks=frozenset({"translation_unit", "compound_statement", "case_statement", "field_declaration_list"}),
    expressions=frozenset({"declaration"}),
    has_parentheses=True,
)

PATTERNS = {
    "c": _C,
    "cpp": msgspec.structs.replace(
        _C, contexts=(*_C.contexts, ("class C {\n", "\n};")), blocks=_C.blocks | {"declaration_list"}
    ),
}
