"""Patterns and rewrites of Java, Kotlin and Scala."""

from __future__ import annotations

from codebatch_workers.syntax.patterns.language_patterns import NO_CONTEXT, CodeLiteral, LanguagePatterns, RuleExample
from codebatch_workers.syntax.patterns.literals import find_line_break

PATTERNS = {
    "java": LanguagePatterns(
        example=RuleExample(
            "System.out.println($$$)",
            "System.out.println is left in the code",
            "class C { void m() { System.out.println(1); } }\n",
            "class C { void m() { log.println(1); } }\n",
        ),
        stand_ins=("{n}", "{n};", "{N} {n}", "{N} {n};"),
        contexts=(NO_CONTEXT, ("", ";"), ("class C {\n", "\n}"), ("", "\nclass C {}")),
        blocks=frozenset(
            {"program", "block", "constructor_body", "switch_block_statement_group", "class_body", "interface_body"}
        ),
        statement_expressions=frozenset(
            {"assignment_expression", "method_invocation", "object_creation_expression", "update_expression"}
        ),
        refused_changes={"lambda_expression": frozenset({"block"})},
        has_parentheses=True,
    ),
    "kotlin": LanguagePatterns(
        example=RuleExample(
            "println($$$)", "println is left in the code", "fun f() { println(1) }\n", "fun f() { log(1) }\n"
        ),
        stand_ins=("{n}", "{n}: {N}"),
        # In the body of a class, a word alone would be an entry of an enumeration. So a property is tried first.
        stand_in_for_many="val {n}: {N}|\n",
        blocks=frozenset({"source_file", "block", "lambda_literal", "class_body"}),
        has_parentheses=True,
    ),
    "scala": LanguagePatterns(
        example=RuleExample("println($$$)", "println is left in the code", "def f = println(1)\n", "def f = log(1)\n"),
        stand_ins=("{n}", "{n}: {N}", "case {n} => {n}"),
        blocks=frozenset(
            {"compilation_unit", "template_body", "block", "indented_block", "case_clause", "lambda_expression"}
        ),
        has_parentheses=True,
        literal=CodeLiteral("interpolated_string", find_line_break),
    ),
}
