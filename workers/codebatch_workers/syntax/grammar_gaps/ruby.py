"""Valid Ruby that the grammar does not support."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codebatch_workers.syntax.grammar_gaps.stand_ins import GapFinder, Replacement, blanks_for, make_gap, name_for

# The start of a heredoc: `<<~A`, `<<-"A"`, or `<<A` without an operand before it.
_HEREDOC_START = re.compile(rb"(?:<<[~-]|(?<=[ (,=])<<(?=[A-Z\"'`]))([\"'`]?)([A-Za-z_]\w*)\1")
_OPENING_BRACE = re.compile(rb"#\{|[{}]")
_HEREDOC_LINES_MAX = 2_000
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


def blank_inner_heredocs(utf8: bytes) -> bytes:
    """Replace each heredoc within an interpolation of another heredoc by an empty string.

    The grammar takes the lines of the inner heredoc for lines of the outer heredoc, and reports no error.
    """
    if utf8.count(b"<<") < 2 or b"#{" not in utf8 or not _HEREDOC_START.search(utf8):
        return utf8
    text = bytearray(utf8)
    lines = utf8.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    row = 0
    while row < len(lines):
        openers = [match for match in _HEREDOC_START.finditer(lines[row]) if not lines[row].lstrip().startswith(b"#")]
        row += 1
        for opener in openers:
            end = _heredoc_end(lines, row, opener[2])
            if end is None:
                break
            if opener[1] != b"'":
                for stand_in in _inner_replacements(lines, starts, row, end):
                    text[stand_in.start : stand_in.start + len(stand_in.text)] = stand_in.text
            row = end + 1
    return bytes(text)


def _heredoc_end(lines: list[bytes], first: int, word: bytes) -> int | None:
    last = min(len(lines), first + _HEREDOC_LINES_MAX)
    return next((row for row in range(first, last) if lines[row].strip() == word), None)


def _inner_replacements(lines: list[bytes], starts: list[int], first: int, end: int) -> Iterator[Replacement]:
    """Yield replacements for heredocs that begin in interpolations, in the lines [first, end) of an outer heredoc.

    An empty string replaces the start of each inner heredoc, and blanks replace its lines.
    """
    depth, row = 0, first
    while row < end:
        line = lines[row]
        opener = next(
            (candidate for candidate in _HEREDOC_START.finditer(line) if depth or b"#{" in line[: candidate.start()]),
            None,
        )
        for match in _OPENING_BRACE.finditer(line):
            if match[0] == b"#{" or depth:
                depth += 1 if match[0] != b"}" else -1
        row += 1
        inner_end = _heredoc_end(lines, row, opener[2]) if opener is not None else None
        if opener is not None and inner_end is not None and inner_end < end:
            yield Replacement(starts[row - 1] + opener.start(), b'""'.ljust(len(opener[0])))
            yield Replacement(starts[row], blanks_for(b"".join(lines[row : inner_end + 1])))
            row = inner_end + 1


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


RUBY_GAPS: tuple[GapFinder, ...] = (
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
