"""Syntax of Rust."""

from __future__ import annotations

from codebatch_workers.syntax.language_syntax import LanguageSyntax, TemplateMarks
from codebatch_workers.syntax.names import names_by_field

SYNTAX = {
    "rust": LanguageSyntax(
        requires_utf8=True,
        queries=("rust",),
        binding_queries=("rust",),
        declared_names=names_by_field,
        reserved_words=frozenset(
            b"as break const continue else enum extern false fn for if impl in let loop match mod move mut pub ref "
            b"return static struct trait true type unsafe use where while".split()
        ),
        comments=("//",),
        template_marks=TemplateMarks(are_names=True),
        parameter_nodes=frozenset({"parameter", "self_parameter"}),
    )
}
