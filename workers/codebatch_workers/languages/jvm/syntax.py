"""Syntax of Java, Kotlin and Scala."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.syntax.language_syntax import LanguageSyntax

SYNTAX: Mapping[str, LanguageSyntax] = {
    "java": LanguageSyntax(),
    "kotlin": LanguageSyntax(is_approximate=True),
    "scala": LanguageSyntax(is_approximate=True),
}
