"""Syntax of C#."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.syntax.language_syntax import LanguageSyntax
from codebatch_workers.syntax.names import names_by_field

SYNTAX: Mapping[str, LanguageSyntax] = {
    "csharp": LanguageSyntax(
        is_approximate=True,
        queries=("csharp",),
        binding_queries=("csharp",),
        declared_names=names_by_field,
        name_marks=(b"@",),
    ),
}
