"""Syntax of Java, Kotlin and Scala."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.syntax.language_syntax import LanguageSyntax

SYNTAX: Mapping[str, LanguageSyntax] = {
    "java": LanguageSyntax(
        queries=("java",),
        binding_queries=("java",),
    ),
    "kotlin": LanguageSyntax(
        is_approximate=True,
        queries=("kotlin",),
        binding_queries=("kotlin",),
    ),
    "scala": LanguageSyntax(
        is_approximate=True,
        queries=("scala",),
        binding_queries=("scala",),
    ),
}
