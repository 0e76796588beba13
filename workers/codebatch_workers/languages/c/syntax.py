"""Syntax of C and C++."""

from __future__ import annotations

from functools import partial

from codebatch_workers.languages.c.captures import extend_captures
from codebatch_workers.languages.c.declarators import c_names, cpp_names
from codebatch_workers.syntax.language_syntax import LanguageSyntax

_RESERVED_IN_C = frozenset(
    b"_Bool _Complex auto break case char const continue default do double else enum extern float for goto if int long "
    b"register return short signed sizeof static struct switch typedef union unsigned void volatile while".split()
)


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


SYNTAX = {
    "c": LanguageSyntax(
        is_approximate=True,
        has_macros=True,
        queries=("c",),
        binding_queries=("c",),
        declared_names=c_names,
        reserved_words=_RESERVED_IN_C,
        comments=("//",),
        embedded_languages={"preproc_arg": "c"},
        repair=partial(_repair, language="c"),
        extend_captures=extend_captures,
    ),
    "cpp": LanguageSyntax(
        is_approximate=True,
        has_macros=True,
        queries=("c", "cpp"),
        declared_names=cpp_names,
        reserved_words=_RESERVED_IN_C
        | frozenset(
            b"bool catch class const_cast constexpr decltype delete dynamic_cast explicit false friend inline mutable "
            b"namespace new noexcept nullptr operator private protected public reinterpret_cast static_assert "
            b"static_cast template this throw true try typeid typename using virtual".split()
        ),
        comments=("//",),
        embedded_languages={"preproc_arg": "c"},
        repair=partial(_repair, language="cpp"),
        extend_captures=extend_captures,
    ),
}
