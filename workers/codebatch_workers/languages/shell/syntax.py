"""Syntax of Bash and Zsh."""

from __future__ import annotations

from codebatch_workers.syntax.language_syntax import LanguageSyntax
from codebatch_workers.syntax.names import names_by_field

SYNTAX = {
    "bash": LanguageSyntax(is_approximate=True, queries=("bash",), declared_names=names_by_field, comments=("#",)),
    "zsh": LanguageSyntax(is_approximate=True, queries=("bash",), declared_names=names_by_field, comments=("#",)),
}
