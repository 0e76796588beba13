"""Syntax of JavaScript and TypeScript."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.languages.javascript.declared_names import bound_names, declared_names
from codebatch_workers.syntax.language_syntax import LanguageSyntax

SYNTAX: Mapping[str, LanguageSyntax] = {
    "javascript": LanguageSyntax(
        queries=("script", "javascript"),
        binding_queries=("script", "javascript"),
        declared_names=declared_names,
        bound_names=bound_names,
    ),
    "tsx": LanguageSyntax(
        queries=("script", "typescript", "jsx"),
        binding_queries=("script", "typescript"),
        declared_names=declared_names,
        bound_names=bound_names,
    ),
    "typescript": LanguageSyntax(
        queries=("script", "typescript"),
        binding_queries=("script", "typescript"),
        declared_names=declared_names,
        bound_names=bound_names,
    ),
}
