"""Syntax of Bash and Zsh."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.syntax.language_syntax import LanguageSyntax

SYNTAX: Mapping[str, LanguageSyntax] = {
    "bash": LanguageSyntax(
        is_approximate=True,
        queries=("bash",),
    ),
    "zsh": LanguageSyntax(
        is_approximate=True,
        queries=("bash",),
    ),
}
