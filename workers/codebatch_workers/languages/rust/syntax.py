"""Syntax of Rust."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.syntax.language_syntax import LanguageSyntax

SYNTAX: Mapping[str, LanguageSyntax] = {
    "rust": LanguageSyntax(
        queries=("rust",),
        binding_queries=("rust",),
    ),
}
