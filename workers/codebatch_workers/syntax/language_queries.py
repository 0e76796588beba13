"""The tree-sitter queries of languages, which are files in the folders of their families."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import tree_sitter

from codebatch_workers.syntax.language.languages import family_of, load_language
from codebatch_workers.syntax.language_syntax import LanguageSyntax

_FAMILIES_DIRECTORY = Path(__file__).parents[1] / "languages"


@cache
def captures_query(language: str) -> tree_sitter.Query:
    """Return the query with the captures that all tasks share (symbols/outline.py)."""
    return _join_queries(language, [f"{name}.scm" for name in LanguageSyntax.of(language).queries])


@cache
def bindings_query(language: str) -> tree_sitter.Query:
    """Return the query for the names that a file binds (bindings.py). The language must have one."""
    return _join_queries(language, [f"{name}.locals.scm" for name in LanguageSyntax.of(language).binding_queries])


def _join_queries(language: str, files: list[str]) -> tree_sitter.Query:
    # They are read as plain files, because importing importlib.resources is slow.
    directory = _FAMILIES_DIRECTORY / (family_of(language) or "") / "queries"
    source = "\n".join((directory / file).read_text(encoding="utf-8") for file in files)
    query: tree_sitter.Query = tree_sitter.Query(load_language(language), source)
    return query
