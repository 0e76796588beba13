"""Facts about a language that a source file needs before any other: to decode, classify and parse it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, NamedTuple

import msgspec
from tree_sitter import Node, Tree

from codebatch_workers.syntax.language.parts import LanguagePart, language_part


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


class LanguageSource(LanguagePart, frozen=True, kw_only=True):
    """The text of a language, its conversion to a tree, and the captures of its query.

    - `declares_encoding`: a comment in one of the first two lines can declare the encoding of the file (PEP 263).
    - `has_minifiers`: minifiers write code in very long lines.
    - `has_dense_lines`: some minifiers break lines after about 500 bytes, but leave hardly any white space.
    - `overruns_scanner`: returns whether a text exceeds limits of the grammar's scanner.
    - `repair`: returns a text of the same length, with other text for what the grammar misreads without an error.
    - `repair_parsed`: like `repair`, but needs the tree of the text.
    - `unseen_errors`: yields the syntax errors that the grammar does not report, given the root and the text.
    - `template_marks`: the marks of templates, or None if syntax errors do not show that a file is a template.
    - `allows_template_marks`: marks of templates are valid text, so that they cause no errors.
    - `parameter_nodes`: the types, separated by blanks, of nodes that are parameters if they are in the field
      `parameters` of a function. If there are none, the query captures parameters.
    - `has_nested_parameters`: the default of a parameter can be a function, and the query also captures parameters.
    - `extend_captures`: returns the captures of the query, with those changed that depend on outer nodes or the text.
    """

    MODULE: ClassVar[str] = "source"

    declares_encoding: bool = False
    has_minifiers: bool = False
    has_dense_lines: bool = False
    overruns_scanner: Callable[[bytes], bool] | None = None
    repair: Callable[[bytes], bytes] | None = None
    repair_parsed: Callable[[bytes, Tree], bytes] | None = None
    unseen_errors: Callable[[Node, bytes], Iterator[UnseenError]] | None = None
    template_marks: TemplateMarks | None = None
    allows_template_marks: bool = False
    parameter_nodes: str = ""
    has_nested_parameters: bool = False
    extend_captures: Callable[[dict[str, list[Node]], bytes], Mapping[str, list[Node]]] | None = None


def language_source(language: str) -> LanguageSource:
    """Return the facts about the text of a language."""
    return language_part(language, LanguageSource)
