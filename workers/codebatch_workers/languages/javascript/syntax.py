"""Syntax of JavaScript and TypeScript."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.syntax.language_syntax import LanguageSyntax

SYNTAX: Mapping[str, LanguageSyntax] = {
    "javascript": LanguageSyntax(
        queries=("script", "javascript"),
        binding_queries=("script", "javascript"),
    ),
    "tsx": LanguageSyntax(
        queries=("script", "typescript", "jsx"),
        binding_queries=("script", "typescript"),
    ),
    "typescript": LanguageSyntax(
        queries=("script", "typescript"),
        binding_queries=("script", "typescript"),
    ),
}
