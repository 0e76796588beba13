"""Code in C and C++ that is not searched for duplicates."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from codebatch_workers.duplicates.excluded_code import enclosing_node
from codebatch_workers.duplicates.language_duplicates import LanguageDuplicates, Span
from codebatch_workers.syntax.source import SourceFile

_DIRECTIVE = re.compile(rb"^[ \t]*#[ \t]*([a-z_]+)(?:[^\\\n]|\\\r?\n|\\.)*", re.MULTILINE)
_COMMENT_AFTER = re.compile(rb"(?<!/)/\*(?![^\n]*\*/)")
_BLANKS = re.compile(rb"(?:\s|//[^\n]*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)*")
_INCLUDES = frozenset((b"include", b"import", b"include_next"))
_CONDITIONS = frozenset((b"if", b"ifdef", b"ifndef"))
_ARMS = frozenset((b"elif", b"elifdef", b"elifndef", b"else"))


def _include_spans(utf8: bytes) -> list[Span]:
    """Return the locations of includes in a text, ascending, with the directives of conditionals around them."""
    return sorted(_iter_spans(utf8)) if b"include" in utf8 or b"import" in utf8 else []


class _Conditional:
    """An open `#if`: the locations of its directives, and what it contains."""

    def __init__(self, directive: Span) -> None:
        self.directives = [directive]
        self.has_include = False
        self.has_other_code = False


def _iter_spans(utf8: bytes) -> Iterator[Span]:
    opened: list[_Conditional] = []
    position = 0
    for match in _DIRECTIVE.finditer(utf8):
        blanks = _BLANKS.match(utf8, position)
        # A comment after the directive can extend over more lines.
        end = match.end() if (comment := _COMMENT_AFTER.search(match[0])) is None else match.start() + comment.start()
        position, name, span = end, match[1], (match.start(), end)
        if opened and (blanks is None or blanks.end() < match.start()):
            opened[-1].has_other_code = True
        if name in _INCLUDES:
            yield span
            if opened:
                opened[-1].has_include = True
        elif name in _CONDITIONS:
            opened.append(_Conditional(span))
        elif name in _ARMS and opened:
            opened[-1].directives.append(span)
        elif name == b"endif" and opened:
            conditional = opened.pop()
            if conditional.has_include and not conditional.has_other_code:
                yield from (*conditional.directives, span)
            if opened:
                opened[-1].has_include |= conditional.has_include
                opened[-1].has_other_code |= conditional.has_other_code or not conditional.has_include
        elif opened:
            opened[-1].has_other_code = True


_TEST_CONDITION = re.compile(rb"^[ \t]*#[ \t]*ifdef[ \t]+(?:\w*_)?(?:UNIT_?|SELF_?)?TESTS?\b", re.MULTILINE)


def _inline_tests(file: SourceFile) -> Iterator[Node]:
    """Yield the groups between `#ifdef TEST` and `#endif`."""
    for match in _TEST_CONDITION.finditer(file.utf8):
        node = enclosing_node(file, match, "preproc_ifdef")
        if node is not None and node.child_by_field_name("alternative") is None:
            yield node


_C = LanguageDuplicates(import_spans=_include_spans, inline_tests=_inline_tests)
DUPLICATES = {"c": _C, "cpp": _C}
