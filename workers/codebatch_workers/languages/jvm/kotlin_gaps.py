"""Valid Kotlin that the grammar does not support: most syntax after Kotlin 1.9, and several members on one line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codebatch_workers.syntax.grammar_gaps.stand_ins import blanks_for, make_gap, make_gaps, name_for, padded_text
from codebatch_workers.syntax.language_gaps import GapFinder, Replacement

# A string such as `$$"…"`. An interpolation in the string begins with as many dollars as are before the quote.
_TEXT_WITH_DOLLARS = re.compile(
    rb'(\$\$+)("""(?:[^"]|"(?!""))*"{3,}|"(?!"")[^"\\\n]*(?:\\[^\n][^"\\\n]*)*")', re.MULTILINE | re.DOTALL
)
_DOLLARS = re.compile(rb"\$+")
_CONTEXT_PARAMETERS = re.compile(rb"^[ \t]*(context[ \t]*\(([^(){};]*)\))(?=\s*[@\w])", re.MULTILINE)
_NAMED_PARAMETER = re.compile(rb"(\w+\s*)(:)")
_IN_PLAIN_TYPES = re.compile(rb"[\w\s:,.]*\Z")
_DESTRUCTURED_NAMES = re.compile(rb"\(((?:\s*va[lr]\s+\w+(?:\s*=\s*\w+)?\s*,?)+)\)(?=\s*(?:=|in\b))")
_DESTRUCTURED_PART = re.compile(rb"(va[lr])\s+\w+(\s*=\s*\w+)?")
_ANNOTATION = rb"@[\w.]+(?:\([^()\n]*\))?"


def _dollar_text_replacements(utf8: bytes) -> Iterator[Replacement]:
    """Yield replacements that turn a multi-dollar string into an ordinary string.

    The ordinary string gets one dollar before each interpolation, and no other dollars.
    """
    if b'$$"' not in utf8:
        return
    for match in _TEXT_WITH_DOLLARS.finditer(utf8):
        needed = len(match[1])
        yield Replacement(match.start(1), blanks_for(match[1]))
        for run in _DOLLARS.finditer(match[2]):
            length = run.end() - run.start()
            stand_in = b"_" * length if length < needed else b"$".rjust(length, b"_")
            yield Replacement(match.start(2) + run.start(), stand_in)


def _context_replacements(utf8: bytes) -> Iterator[Replacement]:
    """Yield replacements that turn `context(a: A)` before a function into an annotation.

    If it contains a type that is not a plain name, blanks replace the whole text.
    """
    for match in _CONTEXT_PARAMETERS.finditer(utf8):
        if _IN_PLAIN_TYPES.match(match[2]) and b":" in match[2]:
            yield Replacement(match.start(1), b"@")
            for named in _NAMED_PARAMETER.finditer(match[2]):
                yield Replacement(match.start(2) + named.start(2), b"=")
        else:
            yield Replacement(match.start(1), blanks_for(match[1]))


def _destructuring_replacements(utf8: bytes) -> Iterator[Replacement]:
    """Yield replacements that turn `(val a, val b = c) = d` into the declaration `val (a, b) = d`."""
    for match in _DESTRUCTURED_NAMES.finditer(utf8):
        for number, part in enumerate(_DESTRUCTURED_PART.finditer(match[1])):
            start = match.start(1) + part.start(1)
            yield (
                Replacement(start, b"   ")
                if number
                else Replacement(match.start(), b"val(".ljust(start + 3 - match.start()))
            )
            if part[2]:
                yield Replacement(match.start(1) + part.start(2), blanks_for(part[2]))


KOTLIN_GAPS: tuple[GapFinder, ...] = (
    # For the guard in `is Int if a -> b`, a comma replaces `if`, so that the guard becomes another condition. In `else
    # if a -> b`, blanks replace the guard.
    make_gap(rb"^[ \t]*(?!else\b)\S[^\n{}]*?\s(if)(?=\s[^\n{}]*->)", padded_text(b",")),
    make_gap(rb"^[ \t]*(else\s+if)(?=\s[^\n{}]*->)"),
    _dollar_text_replacements,
    _context_replacements,
    _destructuring_replacements,
    make_gap(rb"@(all)(?=:)", padded_text(b"get")),
    # A property that declares the type of its backing field.
    make_gap(rb"^[ \t]*(field)(?=\s*=)"),
    make_gap(rb"\b(field\s*:\s*[\w.<>, ?]+)(?=\s*=)"),
    # References such as `String?::length`, and functions such as `fun(x) = y` without types.
    *make_gaps(blanks_for, rb"\w(\?)(?=::)", rb"\bfun\s*\(\s*(\w[\w\s,]*)\)"),
    # Words that are modifiers at other places, and names that begin like an operator.
    make_gap(
        rb"(?:^|[{;(,=]|->)[ \t]*(abstract|annotation|data|enum|external|final|infix|inline|inner|internal|open"
        rb"|override)(?=[ \t]*(?:=|,|\)|\(|\[|\.|[-+*/%]=|\+\+|--))",
        name_for,
    ),
    *make_gaps(
        name_for,
        # The same words in `where?.a`, `f(where = a)`, `a get b` and `suspend { }`.
        rb"\b(where)(?=[ \t]*(?:\?|!!|=|\.|,|\)|\[))",
        rb"[\w)}\]\"][ \t]+([gs]et)(?=[ \t]+[\w(\"])",
        rb"\b(suspend)(?=\s*\{)",
        # A call that looks like an accessor. A getter would have no parameter, and a setter would have one.
        rb"^[ \t]*(get)(?=[ \t]*(?:\((?!\s*\))|\{))",
        rb"^[ \t]*(set)(?=[ \t]*\((?:[^()\n]*,|\s*\"))",
        needs=(b"where", b"get", b"set", b"suspend"),
    ),
    make_gap(rb"\b(i[ns])(?=\d)", lambda text: b"_" + text[1:]),
    # Annotations of a constructor or accessor on their own line.
    *make_gaps(
        blanks_for,
        rb"^[ \t]*(%s)(?=\s+(?:\w+\s+)?constructor\b)" % _ANNOTATION,
        rb"^[ \t]*(%s)(?=\s+(?:\w+\s+)?[gs]et\s*\()" % _ANNOTATION,
    ),
    # Modifiers of constructors and their properties, and of parenthesized function types.
    *make_gaps(
        blanks_for,
        rb"\b(actual|expect)(?=\s+constructor\b)",
        rb"[(,]\s*(actual(?:\s+final)?|final)(?=\s+(?:override|va[lr])\b)",
        rb":\s*(suspend)(?=\s+\(\()",
        needs=(b"actual", b"expect", b"final", b"suspend"),
    ),
    # An empty list as a value.
    make_gap(rb"[=(,]\s*(\[\])(?=\s*[,)])", lambda _: b"00"),
    # The last member on a line, before the closing brace of the block or before another member.
    make_gap(rb"[^\s{;(]([ \t])(?=[ \t]*\})", lambda _: b";"),
    make_gap(rb"\}([ \t])(?=[ \t]*(?:%s)\b)" % rb"constructor|init|fun|class|val|var|companion|object", lambda _: b";"),
)
