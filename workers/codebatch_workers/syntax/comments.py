"""Detection of comments: whether an offset of a file is in a comment.

If there is a syntax tree, even one with errors, its nodes decide. Otherwise, a pattern of the language finds comments.
The pattern skips strings that end on their own line, but does not recognize multi-line strings. If no pattern exists
for a language, all text counts as comment.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from codebatch_workers.syntax.language_syntax import LanguageSyntax

if TYPE_CHECKING:
    from tree_sitter import Tree

    from codebatch_workers.syntax.source import SourceFile

CommentPredicate = Callable[[int], bool]

_PATTERNS: Mapping[str, bytes] = {
    "#": rb"#[^\n]*",
    "//": rb"//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)",
    "dnl": rb"\bdnl\b[^\n]*",
    "--": rb"--[^\n]*",
    ";": rb";[^\n]*",
    "{{--": rb"\{\{--[\s\S]*?(?:--\}\}|\Z)",
    "%": rb"%[^\n]*",
    "<!--": rb"<!--[\s\S]*?(?:-->|\Z)",
}
"""The pattern of each kind of comment, by the mark that opens such a comment."""
_MARKS_NOT_IN_STRINGS = frozenset({"{{--", "%", "<!--"})
"""The marks that open a comment between quotes, too."""
_LANGUAGES_WITHOUT_GRAMMAR: Mapping[str, str] = {
    "#": "awk bazel cmake coffeescript crystal cython dockerfile elixir fish gettext gherkin gitignore graphql "
    "ini jsonnet julia just m4 make meson nim nix perl powershell properties puppet r tcl tcsh thrift",
    "//": "astro d dart fsharp glsl gomod gradle groovy json5 jsonnet less lex mdx objective-c objective-cpp "
    "pascal protobuf pug qml razor sass scss solidity svelte thrift verilog vue yacc zig",
    "dnl": "m4",
    "--": "ada elm haskell vhdl",
    ";": "asm clojure ini lisp racket scheme tree-sitter-query wasm",
    "{{--": "blade",
    "%": "erlang latex prolog",
    "<!--": "astro blade dtd mdx razor svelte svg vue xml",
}
"""For each kind of comment, the languages without a grammar that have it."""
# Literal text of Markdown, in which there are no comments: fenced, or in backquotes. A fence that is not closed extends
# to the end of the file.
_LITERAL_TEXT = rb"(?P<fence>`{3,}|~{3,})[\s\S]*?(?:(?P=fence)|\Z)|`[^`\n]*`?"
# A double-quoted or single-quoted string. A single-quoted string must be short and closed. Otherwise, the quote does
# not begin a string: `8'hFF`, `don't`.
_STRING_LITERALS = rb"\"(?:[^\"\\\n]|\\[^\n])*\"?|'(?:[^'\\\n]|\\[^\n]){0,100}'"
_PROSE_WITHOUT_GRAMMAR = frozenset({"mdx"})

_SHEBANG = re.compile(rb"#!(?![ \t]*\[)[^\n]*")


def shebang_end(utf8: bytes) -> int:
    """Return the offset of the end of the first line if it begins with `#!`, otherwise 0.

    `#![a]` is an attribute in Rust.
    """
    match = _SHEBANG.match(utf8)
    return match.end() if match is not None else 0


def comment_predicate(file: SourceFile) -> CommentPredicate:
    """Return a function that returns whether an offset in the file's `utf8` is in a comment."""
    tree = file.tree
    return _text_comment_predicate(file.utf8, file.language) if tree is None else _tree_comment_predicate(file, tree)


def _tree_comment_predicate(file: SourceFile, tree: Tree) -> CommentPredicate:
    embedded: dict[tuple[int, int], CommentPredicate] = {}

    def is_comment(offset: int) -> bool:
        node = tree.root_node.descendant_for_byte_range(offset, offset + 1)
        if node is None:
            return False
        if "comment" in node.type or node.type == "marginalia":
            # The HTML grammar also finds comments in attribute values.
            return node.parent is None or node.parent.type != "quoted_attribute_value"
        language = file.syntax.embedded_languages.get(node.type)
        if language is None:
            return False
        first, end = span = node.start_byte, node.end_byte
        if span not in embedded:
            embedded[span] = _text_comment_predicate(file.utf8[first:end], language)
        return embedded[span](offset - first)

    return is_comment


def comment_spans(text: bytes, language: str) -> list[tuple[int, int]]:
    """Return the ranges of comments in a text, found by the pattern of the language, if there is one.

    A first line with `#!` is a comment in every language.
    """
    shebang = shebang_end(text)
    spans = [(0, shebang)] if shebang else []
    pattern = _comment_pattern(language)
    if pattern is not None:
        spans += [match.span() for match in pattern.finditer(text, shebang) if match.lastgroup == "comment"]
    return spans


def _text_comment_predicate(text: bytes, language: str) -> CommentPredicate:
    if _comment_pattern(language) is None:
        return lambda _: True
    spans = comment_spans(text, language)
    return lambda offset: _is_within(spans, offset)


def _is_within(spans: Sequence[tuple[int, int]], offset: int) -> bool:
    before = bisect_right(spans, offset, key=lambda span: span[0])
    return before > 0 and offset < spans[before - 1][1]


@cache
def _comment_pattern(language: str) -> re.Pattern[bytes] | None:
    """Return a pattern for the strings and comments of a language. Comments match the group `comment`.

    Return None if the comments of the language are unknown.
    """
    syntax = LanguageSyntax.of(language)
    marks = syntax.comments or [
        mark for mark, others in _LANGUAGES_WITHOUT_GRAMMAR.items() if language in others.split()
    ]
    if not marks:
        return None
    patterns = [rb"(?P<comment>%s)" % b"|".join(_PATTERNS[mark] for mark in marks)]
    if syntax.is_prose or language in _PROSE_WITHOUT_GRAMMAR:
        patterns.append(_LITERAL_TEXT)
    elif not _MARKS_NOT_IN_STRINGS.issuperset(marks):
        patterns.append(_STRING_LITERALS)
    return re.compile(b"|".join(patterns))
