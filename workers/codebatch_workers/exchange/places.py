"""Where in a file another program means by lines and columns that it counts in its own units."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from functools import cached_property
from typing import NamedTuple

from codebatch_workers.exchange.reported import Reported, Unit
from codebatch_workers.syntax.source import SourceFile

_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
# Bytes that are no UTF-8, as Python decodes them, and what tells of a binary file.
_NO_TEXT = re.compile("[\0\udc80-\udcff]")


class Place(NamedTuple):
    """As records have it: lines and columns from 1, columns in code points, the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


class Places:
    """Places in one file. What is asked of a line a second time is not counted again."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        self._lines = len(file.line_starts)
        self._ends: dict[int, int] = {}
        self._astral: dict[int, list[int]] = {}

    def find(self, reported: Reported) -> Place | None:
        """The place; None where the file does not have the line.

        Without a line it is the first one, without a column the line from its beginning, without an end to its end.
        A column behind the line's end is its end, an end before the beginning is the beginning.
        """
        line = reported.line or 1
        if not 1 <= line <= self._lines:
            return None
        end_line = min(reported.end_line, self._lines) if reported.end_line > 0 else line
        start = line, self._column(line, reported.column, reported.unit, default=1)
        end = end_line, self._column(end_line, reported.end_column, reported.unit, default=self._end(end_line))
        return Place(*start, *max(start, end))

    def _column(self, line: int, column: int, unit: Unit, *, default: int) -> int:
        if column < 1:
            return default
        if not self._file.is_ascii:
            column = self._from_utf16(line, column) if unit == "utf-16" else column
            column = self._from_utf8(line, column) if unit == "utf-8" else column
        return min(column, self._end(line))

    def _end(self, line: int) -> int:
        """The column behind the last character of a line."""
        if line not in self._ends:
            self._ends[line] = self._file.position(_end_of(self._file, line))[1]
        return self._ends[line]

    def _from_utf16(self, line: int, column: int) -> int:
        """Behind each character of two units a column is one less."""
        if line not in self._astral:
            text = self._file.utf8[self._file.line_starts[line - 1] : _end_of(self._file, line)].decode("utf-8")
            self._astral[line] = [match.start() + before for before, match in enumerate(_ASTRAL.finditer(text))]
        return column - bisect_left(self._astral[line], column - 1)

    def _from_utf8(self, line: int, column: int) -> int:
        """Bytes are those of the file, whatever its encoding. One within a character is that character."""
        file = self._bytewise
        if line > len(file.line_starts):
            return column
        start, end = file.line_starts[line - 1], _end_of(file, line)
        offset = min(start + column - 1, end)
        while start < offset < end and file.utf8[offset] & 0xC0 == 0x80:
            offset -= 1
        return file.position(offset)[1]

    @cached_property
    def _bytewise(self) -> SourceFile:
        """The file, where it is UTF-8; else one of which each byte that belongs to no character is a `?`."""
        content = self._file.content.removeprefix(codecs.BOM_UTF8)
        if content == self._file.utf8:
            return self._file
        plain = _NO_TEXT.sub("?", content.decode("utf-8", "surrogateescape")).encode()
        return SourceFile(b"", plain, executable=False, contexts={})


def _end_of(file: SourceFile, line: int) -> int:
    """The offset behind the last character of a line."""
    starts = file.line_starts
    return starts[line] - 1 if line < len(starts) else len(file.utf8)
