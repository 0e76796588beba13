"""Syntax of Swift."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.syntax.language_syntax import LanguageSyntax

SYNTAX: Mapping[str, LanguageSyntax] = {
    "swift": LanguageSyntax(
        is_approximate=True,
        queries=("swift",),
        binding_queries=("swift",),
    ),
}
