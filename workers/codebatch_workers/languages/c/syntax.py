"""Syntax of C and C++."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.syntax.language_syntax import LanguageSyntax

SYNTAX: Mapping[str, LanguageSyntax] = {
    "c": LanguageSyntax(
        is_approximate=True,
        has_macros=True,
        queries=("c",),
        binding_queries=("c",),
    ),
    "cpp": LanguageSyntax(
        is_approximate=True,
        has_macros=True,
        queries=("c", "cpp"),
    ),
}
