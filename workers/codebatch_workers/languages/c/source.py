"""The text of C and C++."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from codebatch_workers.languages.c.captures import extend_captures
from codebatch_workers.syntax.language_source import LanguageSource


def _repair(utf8: bytes, language: str) -> bytes:
    """Replace macros and conditionals that the grammar would misread."""
    # Imported late: these modules compile many patterns.
    from codebatch_workers.languages.c.conditionals import with_first_arms
    from codebatch_workers.languages.c.macro_lines import (
        blank_class_macros,
        blank_inner_comments,
        blank_macro_lines,
        blank_module_lines,
    )
    from codebatch_workers.languages.c.macros import replace_macros

    utf8 = blank_inner_comments(with_first_arms(utf8, language))
    if language == "cpp":
        utf8 = blank_module_lines(utf8)
    return replace_macros(blank_macro_lines(blank_class_macros(utf8)))


SOURCE: Mapping[str, LanguageSource] = {
    language: LanguageSource(repair=partial(_repair, language=language), extend_captures=extend_captures)
    for language in ("c", "cpp")
}
