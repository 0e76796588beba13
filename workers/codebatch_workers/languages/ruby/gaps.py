"""Valid Ruby that the grammar does not support."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codebatch_workers.syntax.grammar_gaps.stand_ins import make_gap, name_for
from codebatch_workers.syntax.language_gaps import GapFinder, LanguageGaps, Replacement

_ENDLESS_METHOD_COMMAND = re.compile(
    rb"^[ \t]*(?:\w+[ \t]+)?def[ \t]+(?:self\.)?\w+[?!]?(?:[ \t]*\([^()\n]*\))?[ \t]+=[ \t]+[a-z]\w*[?!]?"
    rb"([ \t])(?![ \t]|[-+*/%%&|<>=~?.](?:[ \t]|=)|(?:%s)\b|=|do\b)" % rb"and|if|or|rescue|unless|until|while",
    re.MULTILINE,
)
# The end of a command's arguments: a modifier or a comment.
_ARGUMENTS_END = re.compile(rb"[ \t](?=(?:if|rescue|unless|until|while)\b|#[ \t])")
_QUOTED_TEXT = re.compile(rb"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'")
_CONTINUED_LINE_END = re.compile(rb"[,\\.({\[]\s*\Z|\bdo(?:\s*\|[^|\n]*\|)?\s*\Z|<<[~-]?[A-Z\"'`]")
_LAMBDA_PARAMETERS = re.compile(rb"->([ \t])[\w*&][^{}\n]{0,200}?([ \t])(?=\{|do\b)")
_STAND_IN_BYTES = bytes.maketrans(b",:&*", b"++  ")


def _command_replacements(utf8: bytes) -> Iterator[Replacement]:
    """Yield replacements that put parentheses around the arguments of the command in `def a = raise "x"`.

    The closing parenthesis replaces the line end. If the line end must stay, the arguments become an operand instead:
    `raise+"x"`.
    """
    for match in _ENDLESS_METHOD_COMMAND.finditer(utf8) if b"def" in utf8 else ():
        start = match.start(1)
        end = utf8.find(b"\n", start) % (len(utf8) + 1)
        arguments = utf8[start + 1 : end]
        masked = _QUOTED_TEXT.sub(lambda text: b"_" * len(text[0]), arguments)
        if _CONTINUED_LINE_END.search(masked):
            continue
        modifier = _ARGUMENTS_END.search(masked)
        if modifier is not None:
            yield Replacement(start, b"(")
            yield Replacement(start + 1 + modifier.start(), b")")
        elif utf8.startswith(b"end", end + 1):
            yield Replacement(start, b"(")
            yield Replacement(end, b")")
        elif utf8[end + 1 : end + 2].isspace():
            yield Replacement(start, b"(")
            yield Replacement(end, b");")
        else:
            yield Replacement(start, b"+")
            for mark in re.finditer(
                rb",|(?<=\w):(?=[ \t])|(?<![\w ])[&*]{1,2}(?=[\w(])|(?<=[ ,])[&*]{1,2}(?=\w)", masked
            ):
                yield Replacement(start + 1 + mark.start(), mark[0].translate(_STAND_IN_BYTES))


def _lambda_replacements(utf8: bytes) -> Iterator[Replacement]:
    """Yield replacements that put parentheses around the parameters in `-> a: { }` and `-> a=b() { }`."""
    for match in _LAMBDA_PARAMETERS.finditer(utf8) if b"->" in utf8 else ():
        yield Replacement(match.start(1), b"(")
        yield Replacement(match.start(2), b")")


_GAPS: tuple[GapFinder, ...] = (
    _command_replacements,
    # Anonymous arguments, with the closing parenthesis on another line: `f(a, &\n)`. The parenthesis moves to the line
    # of the arguments.
    make_gap(
        rb"(?<=[(,\s])(?:&|\*{1,2})([ \t]*\r?\n\s{0,200}\))",
        lambda end: b")" + end[:-1],
        needs=(b"&", b"*"),
    ),
    # Symbols of special variables: `:$'`.
    make_gap(rb":\$([^\w\s])", lambda _: b"_", needs=(b":$",)),
    # The operator in `a<<b`, which the grammar takes for the start of a heredoc.
    make_gap(rb"[\w\])}](<<)(?=[A-Za-z_])", lambda _: b"+ ", needs=(b"<<",)),
    make_gap(rb"\bdef\s+(self)(?=\s*[;(=\n])", name_for, needs=(b"self",)),
    _lambda_replacements,
    # Constants that begin with a non-ASCII letter: Latin, Greek or Cyrillic.
    make_gap(
        rb"(?<![\w\x80-\xff])(\xc3[\x80-\x9e]|\xce[\x91-\xa9]|\xd0[\x90-\xaf])",
        lambda _: b"XX",
        needs=(b"\xc3", b"\xce", b"\xd0"),
    ),
)

GAPS = {"ruby": LanguageGaps(finders=_GAPS)}
