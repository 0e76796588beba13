"""Syntax of Python."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.syntax.language_syntax import LanguageSyntax

SYNTAX: Mapping[str, LanguageSyntax] = {
    "python": LanguageSyntax(
        queries=("python",),
        binding_queries=("python",),
    ),
}
