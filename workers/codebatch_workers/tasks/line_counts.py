"""Numbers of code, comment and blank lines of a file, counted by the rules of scc.

A line is code if it has anything other than comments and white space. Python docstrings count as comments. A line of
white space is blank, with two exceptions: within a comment or docstring it counts as comment, and within another string
as code. If there is no syntax tree, patterns find the comments. In a language without comments, all lines that are not
blank are code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from io import BytesIO
from itertools import accumulate
from operator import not_
from typing import NamedTuple

from codebatch_workers.duplicates.code_lines import remove_comments
from codebatch_workers.duplicates.fingerprints import FINGERPRINTED_BYTES_MAX, alternating_lengths
from codebatch_workers.duplicates.fingerprints import code_lines_without_space as code_lines
from codebatch_workers.duplicates.fingerprints import comment_gaps as gaps_of_tree
from codebatch_workers.syntax.comments import comment_spans
from codebatch_workers.syntax.source import SourceFile

_BLANK_LINE = re.compile(rb"(?<=\n)[ \t\r\f\v]*\n")
# A node of the tree is a string if its type contains one of these texts.
_STRING_NODE_PARTS = ("string", "str_text", "heredoc", "quoted")


class LineCounts(NamedTuple):
    """The numbers of code, comment and blank lines. Their sum is the number of lines of the file."""

    code: int
    comment: int
    blank: int


def count_lines(file: SourceFile) -> LineCounts:
    """Count the lines of a text file."""
    utf8 = file.utf8
    nonblank = _count_nonblank_lines(utf8)
    if file.tree is None or file.is_hopeless:
        gaps = [] if file.syntax.is_prose else alternating_lengths(comment_spans(utf8, file.language))
        code = _count_nonblank_lines(remove_comments(utf8, gaps)) if gaps else nonblank
    else:
        gaps = file.derived(gaps_of_tree)
        is_short = len(utf8) <= FINGERPRINTED_BYTES_MAX
        code = len(file.derived(code_lines)) if is_short else _count_nonblank_lines(remove_comments(utf8, gaps))
    lines = text_line_count(file)
    blank = lines - nonblank - _blank_lines_within(utf8, gaps)
    docstring_lines, blank_in_docstrings = _docstring_lines(file)
    blank_in_strings = _string_blank_lines(file) if blank else 0
    code += blank_in_strings - blank_in_docstrings - docstring_lines
    blank -= blank_in_strings
    return LineCounts(code, lines - code - blank, blank)


def text_line_count(file: SourceFile) -> int:
    """Return the number of lines of a text file. For a notebook, only the lines of code cells count."""
    return file.line_count if file.notebook is None else file.notebook.code_line_count


def _count_nonblank_lines(utf8: bytes) -> int:
    return sum(map(not_, map(bytes.isspace, BytesIO(utf8))))


def _blank_lines_within(utf8: bytes, gaps: Sequence[int]) -> int:
    """Return the number of lines of white space within comments. `gaps` has lengths of text and of comments in turn."""
    boundaries = accumulate(gaps)
    return sum(
        _count_blank_lines(utf8[start:end])
        for start, end in zip(boundaries, boundaries, strict=True)
        if utf8.find(b"\n", start, end) >= 0
    )


def _count_blank_lines(text: bytes) -> int:
    return sum(not line.strip() for line in text.split(b"\n")[1:-1])


def _string_blank_lines(file: SourceFile) -> int:
    """Return the number of lines of white space within strings, including docstrings."""
    if file.tree is None or file.is_hopeless:
        return 0
    find = file.tree.root_node.descendant_for_byte_range
    boundaries = (match.start() for match in _BLANK_LINE.finditer(file.utf8))
    return sum((node := find(place, place + 1)) is not None and _is_string(node.type) for place in boundaries)


@lru_cache
def _is_string(node_type: str) -> bool:
    return any(part in node_type for part in _STRING_NODE_PARTS)


def _docstring_lines(file: SourceFile) -> tuple[int, int]:
    """Return the number of lines that belong only to docstrings: first lines with text, then lines of white space."""
    docstring_lines = blank = 0
    for start, end in _docstring_spans(file):
        first = file.utf8.rfind(b"\n", 0, start) + 1
        last = file.utf8.find(b"\n", end)
        text = file.utf8[start:end]
        has_code_before = bool(file.utf8[first:start].strip())
        has_code_after = bool(file.utf8[end : last if last >= 0 else None].strip())
        lines = text.count(b"\n") + 1
        inner = _count_blank_lines(text)
        lines_with_code = has_code_before + has_code_after if lines > 1 else has_code_before or has_code_after
        docstring_lines += lines - inner - lines_with_code
        blank += inner
    return docstring_lines, blank


def _docstring_spans(file: SourceFile) -> Iterator[tuple[int, int]]:
    for node in file.captures.get("docstring", ()):
        yield node.start_byte, node.end_byte
