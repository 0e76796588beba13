"""Heredocs within interpolations of other heredocs, which the grammar misreads."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codebatch_workers.syntax.grammar_gaps.stand_ins import blanks_for
from codebatch_workers.syntax.language_gaps import Replacement

# The start of a heredoc: `<<~A`, `<<-"A"`, or `<<A` without an operand before it.
_HEREDOC_START = re.compile(rb"(?:<<[~-]|(?<=[ (,=])<<(?=[A-Z\"'`]))([\"'`]?)([A-Za-z_]\w*)\1")
_OPENING_BRACE = re.compile(rb"#\{|[{}]")
_HEREDOC_LINES_MAX = 2_000


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
