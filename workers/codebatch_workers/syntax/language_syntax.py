"""Facts about the syntax of a language that parsing, patterns and names need."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from codebatch_workers.syntax.language.parts import LanguagePart, language_part

if TYPE_CHECKING:
    from tree_sitter import Node

    from codebatch_workers.syntax.names import NamesReader


class MigrationFramework(NamedTuple):
    """A framework for migrations.

    Its migrations contain `needle`, match all of `statements`, and have a path that matches `path`.
    """

    needle: bytes
    statements: tuple[re.Pattern[bytes], ...] = ()
    path: re.Pattern[bytes] | None = None


class LanguageSyntax(LanguagePart, frozen=True, kw_only=True):
    """The syntax of a language.

    - `is_approximate`: a syntax error of the grammar does not show that the code is wrong. This holds for shells,
      languages with a preprocessor, dialects of SQL, languages newer than their grammar, and formats for which browsers
      accept any input.
    - `is_data`: a language of data or prose, without functions, imports or decisions.
    - `is_prose`: any text is valid. A task does not get the tree of a file unless it calls `parse`.
    - `has_macros`: a preprocessor replaces macros, which can be in places that the grammar does not expect.
    - `queries`: the names of files `NAME.scm` in the folder `queries` of the family. Together they are the query with
      the captures that all tasks share (symbols/outline.py). Languages can share a file.
    - `binding_queries`: the names of files `NAME.locals.scm` in the same folder. Together they are the query for the
      names that a file binds (bindings.py).
    - `declared_names`: the reader of the names that a definition binds (names.py), or None in a language without
      definitions.
    - `bound_names`: the reader of the ranges of names in the node of a binding, if this node can be a pattern with
      several names. Otherwise None: the node is the name.
    - `reserved_words`: words that cannot be names. A grammar that recovers from an error can take them for names. In
      JavaScript there are none, because any word can be the name of a member.
    - `name_marks`: the bytes with which a quoted name, or a name after a mark such as `@`, begins. Such a name may be a
      reserved word.
    - `comments`: the kinds of comments (comments.py), each named by the mark that opens it, such as `#`.
    - `embedded_languages`: the types of nodes whose text is in another language, which determines its comments.
    - `migrations`: the frameworks whose migrations are in the language (classification/migrations.py).
    - `is_for_browsers`: web directories contain copies of libraries in the language.
    - `json_dialect`: the dialect of JSON that the readers of files accept: `strict`, or `tolerant` of comments.
    """

    MODULE: ClassVar[str] = "syntax"

    is_approximate: bool = False
    is_data: bool = False
    is_prose: bool = False
    has_macros: bool = False
    queries: tuple[str, ...] = ()
    binding_queries: tuple[str, ...] = ()
    declared_names: NamesReader | None = None
    bound_names: Callable[[Node], list[tuple[int, int]]] | None = None
    reserved_words: frozenset[bytes] = frozenset()
    name_marks: tuple[bytes, ...] = ()
    comments: tuple[str, ...] = ()
    embedded_languages: Mapping[str, str] = {}
    migrations: tuple[MigrationFramework, ...] = ()
    is_for_browsers: bool = False
    json_dialect: Literal["", "strict", "tolerant"] = ""


def language_syntax(language: str) -> LanguageSyntax:
    """Return the syntax of a language."""
    return language_part(language, LanguageSyntax)
