"""Syntax of JavaScript and TypeScript."""

from __future__ import annotations

import re
from collections.abc import Mapping

from codebatch_workers.languages.javascript.declared_names import bound_names, declared_names
from codebatch_workers.syntax.language_syntax import LanguageSyntax, MigrationFramework

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

SYNTAX: Mapping[str, LanguageSyntax] = {
    "javascript": LanguageSyntax(
        queries=("script", "javascript"),
        binding_queries=("script", "javascript"),
        declared_names=declared_names,
        bound_names=bound_names,
        comments=("//",),
        migrations=_MIGRATIONS,
        is_for_browsers=True,
    ),
    "tsx": LanguageSyntax(
        queries=("script", "typescript", "jsx"),
        binding_queries=("script", "typescript"),
        declared_names=declared_names,
        bound_names=bound_names,
        comments=("//",),
    ),
    "typescript": LanguageSyntax(
        queries=("script", "typescript"),
        binding_queries=("script", "typescript"),
        declared_names=declared_names,
        bound_names=bound_names,
        comments=("//",),
        migrations=_MIGRATIONS,
    ),
}
