"""Facts about the syntax of a language that patterns and rewrites need."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple

from tree_sitter import Node

from codebatch_workers.syntax.language.parts import LanguagePart

NO_CONTEXT = ("", "")


class RuleExample(NamedTuple):
    """A pattern or query with a message, and sources in which it must match, or must not match."""

    pattern: str
    message: str
    bad: str
    good: str
    query: str = ""


class CodeLiteral(NamedTuple):
    """String literals that can contain code, but allow less code than other places.

    - `node_type`: the type of the nodes of such literals.
    - `find_forbidden`: returns a description of what a literal does not allow in new code, or an empty text. It gets
      the new code, the literal and the contexts of the file.
    - `text_types`: the types of the nodes of text in a literal, if all others are code. If None, only interpolations
      are.
    """

    node_type: str
    find_forbidden: Callable[[bytes, bytes, Mapping[str, bytes]], str]
    text_types: frozenset[str] | None = None


class StatementStart(NamedTuple):
    """Expressions that are read differently at the start of a statement: `{` begins an object or a block.

    - `code`: matches the beginning of such an expression.
    - `parents`: the types of the nodes that can begin with a statement.
    - `is_statement`: such an expression is also valid as a whole statement.
    """

    code: re.Pattern[bytes]
    parents: frozenset[str]
    is_statement: bool = False


class LanguagePatterns(LanguagePart, frozen=True, kw_only=True):
    """The patterns and rewrites of a language.

    - `example`: a custom rule, with which `rules new` begins a new rule.

    Reading of patterns (reading.py):

    - `stand_ins`: placeholders, code that replaces a metavariable while a pattern is parsed. They are tried in order.
      In them, `{n}` becomes a lower-case word that the pattern does not contain, such as `z0z`. `{N}` becomes the same
      word capitalized: `Z0z`. The node that consists of the placeholder becomes the metavariable. Text after `|` only
      makes the code valid, and is not part of this node.
    - `stand_in_for_many`: the placeholder that is tried first for `$$$`, if it is not the first of `stand_ins`.
    - `contexts`: the code before and after a pattern, with which it is parsed. They are tried in order, and the first
      one without a syntax error counts. So contexts of statements precede those of expressions.

    Places of new code (places.py):

    - `blocks`: the types of nodes that consist of any number of statements.
    - `expressions`: the types of statements and declarations that may stand for expressions: `a * b;` in C.
    - `statement_expressions`: the types of expressions that may be statements. Empty if all may.
    - `refused_changes`: for types of nodes, the types of code that may not replace code of another type in them. If
      there are none, no other type may.

    Grouping (grouping.py, operands.py):

    - `has_parentheses`: parentheses group an expression.
    - `has_words`: the code consists of words, whose types depend on the code around them.
    - `needs_parentheses`: returns whether an expression needs parentheses below its parent, or None if the rules for
      all languages decide. It gets the expression, the parent, and whether the parent is an operation.
    - `grouped_operands`: the types of expressions that need parentheses before a member, a call or an index.
    - `statement_start`: expressions that need parentheses at the start of a statement.

    String literals (literals.py):

    - `literal`: string literals that can contain code.
    """

    MODULE: ClassVar[str] = "patterns"

    example: RuleExample | None = None
    stand_ins: tuple[str, ...] = ("{n}",)
    stand_in_for_many: str = ""
    contexts: tuple[tuple[str, str], ...] = (NO_CONTEXT,)
    blocks: frozenset[str] = frozenset()
    expressions: frozenset[str] = frozenset()
    statement_expressions: frozenset[str] = frozenset()
    refused_changes: Mapping[str, frozenset[str]] = {}
    has_parentheses: bool = False
    has_words: bool = False
    needs_parentheses: Callable[[Node, Node, bool], bool | None] | None = None
    grouped_operands: frozenset[str] = frozenset()
    statement_start: StatementStart | None = None
    literal: CodeLiteral | None = None
