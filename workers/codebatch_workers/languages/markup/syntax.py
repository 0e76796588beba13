"""Syntax of CSS, HTML and Markdown."""

from __future__ import annotations

import re

from codebatch_workers.syntax.language_syntax import LanguageSyntax, TemplateMarks

_ASCII_FOR_ALL = bytes([*range(0x80), *[ord("x")] * 0x80])
# Lines that open very many blocks. The scanner of a grammar must store its state in 1,024 bytes. For such lines, the
# scanner of Markdown writes more (tree-sitter-markdown issue 243).
_DEEP_LINE = re.compile(rb"\n[ \t>*+\-\d.)]{240}")


def _overruns_markdown_scanner(utf8: bytes) -> bool:
    # A search for a line feed is ten times as fast as a search for `^`.
    return _DEEP_LINE.search(b"\n" + utf8) is not None


def _replace_non_ascii(utf8: bytes) -> bytes:
    """Replace all bytes that are not ASCII by letters. The syntax of Markdown is ASCII.

    The scanner passes any code point to isdigit(3), which may crash (tree-sitter-markdown issue 252).
    """
    return utf8.translate(_ASCII_FOR_ALL)


SYNTAX = {
    "css": LanguageSyntax(
        is_approximate=True,
        is_declarative=True,
        queries=("css",),
        comments=("//",),
        is_for_browsers=True,
        template_marks=TemplateMarks(),
    ),
    "html": LanguageSyntax(
        encoding_declaration=re.compile(rb"charset\s*=\s*[\"']?([\w.-]+)", re.IGNORECASE),
        has_right_to_left_text=True,
        is_approximate=True,
        is_declarative=True,
        queries=("html",),
        comments=("<!--",),
        embedded_languages={"raw_text": "javascript"},
        allows_template_marks=True,
    ),
    "markdown": LanguageSyntax(
        has_right_to_left_text=True,
        is_declarative=True,
        is_prose=True,
        queries=("markdown",),
        comments=("<!--",),
        overruns_scanner=_overruns_markdown_scanner,
        repair=_replace_non_ascii,
    ),
}
