"""The syntax of a language: its grammar, text, names, comments and templates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import msgspec

from codebatch_workers.syntax.language.parts import LanguagePart

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

    from codebatch_workers.syntax.names import NamesReader


class MigrationFramework(NamedTuple):
    """A framework for migrations.

    Its migrations contain `needle`, match all of `statements`, and have a path that matches `path`.
    """

    needle: bytes
    statements: tuple[re.Pattern[bytes], ...] = ()
    path: re.Pattern[bytes] | None = None


class UnseenError(NamedTuple):
    """A syntax error: its offsets in `utf8`, and its message."""

    start: int
    end: int
    message: str


class TemplateMarks(msgspec.Struct, frozen=True, kw_only=True):
    """The marks that show that a file is a template. They count only if they are on the lines of a syntax error.

    - `are_names`: a mark must contain only a name, because two braces can begin a nested list.
    - `others`: further marks of the language, on the lines of any error. If not `are_names`, only the first line of the
      first error counts.
    """

    are_names: bool = False
    others: re.Pattern[bytes] | None = None


class LanguageSyntax(LanguagePart, frozen=True, kw_only=True):
    """The syntax of a language.

    - `is_approximate`: a syntax error of the grammar does not show that the code is wrong. This holds for shells,
      languages with a preprocessor, dialects of SQL, languages newer than their grammar, and formats for which browsers
      accept any input.
    - `is_declarative`: a language without functions, imports or decisions.
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
    - `reserved_words`: words that cannot be names. Symbols and uses with these names are left out, because a grammar
      that recovers from an error can take them for names. In JavaScript there are none, because any word can be the
      name of a member.
    - `name_marks`: the bytes with which a quoted name, or a name after a mark such as `@`, begins (names.py has the
      closing mark of each). Such a name may be a reserved word.
    - `comments`: the kinds of comments (comments.py), each named by the mark that opens it, such as `#`.
    - `embedded_languages`: the types of nodes whose text is in another language, which determines its comments.
    - `migrations`: the frameworks whose migrations are in the language (classification/migrations.py).
    - `is_for_browsers`: web directories contain copies of libraries in the language. Minifiers write it in very long
      lines.
    - `has_encoding_comments`: a comment in one of the first two lines can declare the encoding of the file (PEP 263).
    - `has_dense_lines`: some minifiers break lines after about 500 bytes, but leave hardly any white space.
    - `overruns_scanner`: returns whether a text exceeds limits of the grammar's scanner.
    - `repair`: returns a text of the same length, with other text for what the grammar misreads without an error.
    - `repair_parsed`: like `repair`, but needs the tree of the text.
    - `unseen_errors`: yields the syntax errors that the grammar does not report, given the root and the text.
    - `template_marks`: the marks of templates, or None if syntax errors do not show that a file is a template.
    - `allows_template_marks`: marks of templates are valid text, so that they cause no errors.
    - `parameter_nodes`: the types of nodes that are parameters if they are in the field `parameters` of a function.
      If there are none, the query captures parameters.
    - `has_nested_parameters`: the default of a parameter can be a function, and the query also captures parameters.
    - `extend_captures`: returns the captures of the query, with those changed that depend on outer nodes or the text.
      It must add the parameters too: `parameter_nodes` is not used then.
    - `has_exact_parser`: ruff parses the files, so that errors in their trees do not count.
    - `find_invalid_bytes`: returns the offset of bytes that no parser of the language accepts, and why, given the
      encoding and the text.
    - `dialect_mark`: text at the beginning of a file in a dialect that the grammar does not support.
    - `requires_utf8`: invalid UTF-8 in a comment is an error, too.
    - `encoding_declaration`: a pattern for the declaration of an encoding that the readers of a file respect.
    - `has_right_to_left_text`: texts for people can be in a language that is written from right to left.
    """

    MODULE: ClassVar[str] = "syntax"

    is_approximate: bool = False
    is_declarative: bool = False
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
    has_encoding_comments: bool = False
    has_dense_lines: bool = False
    overruns_scanner: Callable[[bytes], bool] | None = None
    repair: Callable[[bytes], bytes] | None = None
    repair_parsed: Callable[[bytes, Tree], bytes] | None = None
    unseen_errors: Callable[[Node, bytes], Iterator[UnseenError]] | None = None
    template_marks: TemplateMarks | None = None
    allows_template_marks: bool = False
    parameter_nodes: frozenset[str] = frozenset()
    has_nested_parameters: bool = False
    extend_captures: Callable[[dict[str, list[Node]], bytes], Mapping[str, list[Node]]] | None = None
    has_exact_parser: bool = False
    find_invalid_bytes: Callable[[str, bytes], tuple[int, str] | None] | None = None
    dialect_mark: bytes = b""
    requires_utf8: bool = False
    encoding_declaration: re.Pattern[bytes] | None = None
    has_right_to_left_text: bool = False
