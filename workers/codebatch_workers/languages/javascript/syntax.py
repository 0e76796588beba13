"""Syntax of JavaScript and TypeScript."""

from __future__ import annotations

import re

import msgspec

from codebatch_workers.languages.javascript.declared_names import bound_names, declared_names
from codebatch_workers.syntax.language_syntax import LanguageSyntax, MigrationFramework, TemplateMarks

_MIGRATIONS = (
    MigrationFramework(
        b"up",
        (
            re.compile(rb"\bup\b\s*[:=(]"),
            re.compile(rb"\b(?:knex|pgm|[qQ]ueryInterface|[qQ]ueryRunner|MigrationInterface)\b"),
        ),
        re.compile(rb"(?:^|/)migrations?/", re.IGNORECASE),
    ),
)

_TYPESCRIPT = LanguageSyntax(
    queries=("script", "typescript"),
    binding_queries=("script", "typescript"),
    declared_names=declared_names,
    bound_names=bound_names,
    comments=("//",),
    migrations=_MIGRATIONS,
    template_marks=TemplateMarks(),
    parameter_nodes=frozenset({"optional_parameter", "required_parameter"}),
    has_nested_parameters=True,
)

SYNTAX = {
    "javascript": LanguageSyntax(
        dialect_mark=b"@flow",
        queries=("script", "javascript"),
        binding_queries=("script", "javascript"),
        declared_names=declared_names,
        bound_names=bound_names,
        comments=("//",),
        migrations=_MIGRATIONS,
        is_for_browsers=True,
        has_dense_lines=True,
        template_marks=TemplateMarks(),
        parameter_nodes=frozenset(
            {"array_pattern", "assignment_pattern", "identifier", "object_pattern", "rest_pattern"}
        ),
        has_nested_parameters=True,
    ),
    "tsx": msgspec.structs.replace(_TYPESCRIPT, queries=("script", "typescript", "jsx"), migrations=()),
    "typescript": _TYPESCRIPT,
}
