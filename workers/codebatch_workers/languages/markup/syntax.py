"""Syntax of CSS, HTML and Markdown."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.syntax.language_syntax import LanguageSyntax

SYNTAX: Mapping[str, LanguageSyntax] = {
    "css": LanguageSyntax(is_approximate=True, is_data=True, queries=("css",), comments=("//",), is_for_browsers=True),
    "html": LanguageSyntax(
        is_approximate=True,
        is_data=True,
        queries=("html",),
        comments=("<!--",),
        embedded_languages={"raw_text": "javascript"},
    ),
    "markdown": LanguageSyntax(is_data=True, is_prose=True, queries=("markdown",), comments=("<!--",)),
}
