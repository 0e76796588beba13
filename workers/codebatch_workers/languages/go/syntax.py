"""Syntax of Go."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.syntax.language_syntax import LanguageSyntax

SYNTAX: Mapping[str, LanguageSyntax] = {
    "go": LanguageSyntax(
        queries=("go",),
        binding_queries=("go",),
    ),
}
