"""Patterns and rewrites of PHP."""

from __future__ import annotations

import re
from collections.abc import Mapping

from codebatch_workers.syntax.patterns.language_patterns import CodeLiteral, LanguagePatterns, RuleExample
from codebatch_workers.syntax.patterns.literals import without_brackets

_VARIABLE = re.compile(rb"\$\w+(?:(?:\?->|->|::)\$?\w+)*")


def _find_forbidden(code: bytes, _literal: bytes, _contexts: Mapping[str, bytes]) -> str:
    is_variable = _VARIABLE.fullmatch(without_brackets(code)) is not None
    return "" if is_variable else "an expression other than a variable there"


PATTERNS = {
    "php": LanguagePatterns(
        example=RuleExample(
            "var_dump($$$)", "var_dump is left in the code", "<?php var_dump($a);\n", "<?php log($a);\n"
        ),
        stand_ins=("${n}", "{n}", "${n};", "public ${n};"),
        contexts=(("<?php ", ""), ("<?php ", ";"), ("<?php class C { ", " }")),
        blocks=frozenset(
            {"program", "compound_statement", "colon_block", "case_statement", "default_statement", "declaration_list"}
        ),
        has_parentheses=True,
        grouped_operands=frozenset({"object_creation_expression"}),
        literal=CodeLiteral("encapsed_string", _find_forbidden, frozenset({"string_content"})),
    )
}
