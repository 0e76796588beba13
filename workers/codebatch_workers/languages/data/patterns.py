"""Patterns and rewrites of HCL, JSON, SQL, TOML and YAML."""

from __future__ import annotations

from codebatch_workers.syntax.patterns.language_patterns import NO_CONTEXT, LanguagePatterns, RuleExample

_JSON = LanguagePatterns(
    example=RuleExample('"debug": true', "debug is on", '{"debug": true}\n', '{"debug": false}\n'),
    stand_ins=('"{n}"', "{n}"),
    contexts=(NO_CONTEXT, ("{", "}")),
)

PATTERNS = {
    "hcl": LanguagePatterns(
        example=RuleExample("debug = true", "debug is on", "debug = true\n", "debug = false\n"),
        stand_ins=("{n}", "{n} = 1"),
        blocks=frozenset({"body"}),
        has_parentheses=True,
    ),
    "json": _JSON,
    "jsonc": _JSON,
    "sql": LanguagePatterns(
        example=RuleExample(
            "DELETE FROM $T", "all of {T} is deleted", "DELETE FROM a;\n", "DELETE FROM a WHERE b = 1;\n"
        ),
        blocks=frozenset({"program"}),
        has_parentheses=True,
    ),
    "toml": LanguagePatterns(
        example=RuleExample("debug = true", "debug is on", "debug = true\n", "debug = false\n"),
        stand_ins=("{n}", '"{n}"', "case {n}:"),
        blocks=frozenset({"document", "table", "table_array_element"}),
    ),
    "yaml": LanguagePatterns(
        example=RuleExample("debug: true", "debug is on", "debug: true\n", "debug: false\n"),
        blocks=frozenset({"block_mapping", "block_sequence"}),
    ),
}
