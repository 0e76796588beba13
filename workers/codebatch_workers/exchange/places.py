"""Where in a file another program means by lines and columns that it counts in its own units."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left, bisect_right
from functools import cached_property, partial
from io import BytesIO
from itertools import accumulate
from typing import NamedTuple

from codebatch_workers.exchange.reported import Reported, ReportedSpan, Unit
from codebatch_workers.syntax.language.encodings import WIDE_MARKS
from codebatch_workers.syntax.source import SourceFile

_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
# Bytes that are no UTF-8, as Python decodes them, and what tells of a binary file.
_NO_TEXT = re.compile("[\0\udc80-\udcff]")
# Of UTF-8, those that begin no character, and those that begin one of two units of UTF-16.
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))
_ASTRAL_BYTES = bytes(range(0xF0, 0x100))
# Bytes of a unit of UTF-32 and UTF-16; the mark is one.
_WIDE_UNITS: dict[int, tuple[Unit, int]] = {4: ("characters", 4), 2: ("utf-16", 2)}


class RecordLocation(NamedTuple):
    """As records have it: lines and columns from 1, columns in code points, the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


class LocationConverter:
    """Places in one file. What is asked of a line a second time is not counted again."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        self._lines = len(file.line_starts)
        self._ends: dict[int, int] = {}
        self._astral: dict[int, list[int]] = {}
        self._starts: dict[Unit, list[int]] = {}

    def find(self, reported: Reported) -> RecordLocation | None:
        """The place; None where the file does not have the line, or ends before the span begins.

        Without a line or a span it is the first line, without a column the line from its beginning, without an end to
        its end. A column behind the line's end is its end, an end before the beginning is the beginning; a span that
        goes beyond the file ends with it.
        """
        if reported.span is not None and not reported.line:
            return self._place_of(reported.span, reported.unit)
        line = reported.line or 1
        if not 1 <= line <= self._lines:
            return None
        end_line = min(reported.end_line, self._lines) if reported.end_line > 0 else line
        start = line, self._column(line, reported.column, reported.unit, default=1)
        end = end_line, self._column(end_line, reported.end_column, reported.unit, default=self._end(end_line))
        return RecordLocation(*start, *max(start, end))

    def _place_of(self, span: ReportedSpan, unit: Unit) -> RecordLocation | None:
        at = self._of_bytes if span.is_of_bytes else partial(self._of_units, unit)
        start = at(span.start)
        if start is None:
            return None
        end = at(span.start + span.length) or self._file.position(len(self._file.utf8))
        return RecordLocation(*start, *max(start, end))

    def _of_units(self, unit: Unit, offset: int) -> tuple[int, int] | None:
        """The line and column of an offset in a text without its mark; None behind its end."""
        starts = self._starts_in(unit)
        if offset > starts[-1]:
            return None
        line = bisect_right(starts, offset, hi=self._lines)
        return line, self._column(line, offset - starts[line - 1] + 1, unit, default=1)

    def _starts_in(self, unit: Unit) -> list[int]:
        """How many units are before each line, and in all."""
        if unit not in self._starts:
            twice = _ASTRAL_BYTES if unit == "utf-16" else b""
            lines = BytesIO(self._file.utf8)
            sizes = (len(line.translate(None, _CONTINUATION_BYTES)) + _count(line, twice) for line in lines)
            self._starts[unit] = list(accumulate(sizes, initial=0))
        return self._starts[unit]

    def _of_bytes(self, offset: int) -> tuple[int, int] | None:
        """The line and column of an offset in the file as it lies there, of which a mark is part; None behind its end.

        One within a character is that character.
        """
        content = self._file.content
        if offset > len(content):
            return None
        if self._file.is_binary:
            return 1, 1
        if content.startswith(WIDE_MARKS):
            unit, size = _WIDE_UNITS[4 if self._file.encoding.startswith("utf-32") else 2]
            return self._of_units(unit, max(offset // size - 1, 0))
        if self._has_a_byte_each:
            return self._of_units("characters", offset)
        file = self._bytewise
        offset -= len(content) - len(file.utf8)
        line = file.line(max(offset, 0))
        return line, self._from_utf8(line, offset - file.line_starts[line - 1] + 1) if offset > 0 else 1

    def _column(self, line: int, column: int, unit: Unit, *, default: int) -> int:
        if column < 1:
            return default
        if not self._file.is_ascii:
            column = self._from_utf16(line, column) if unit == "utf-16" else column
            column = self._from_utf8(line, column) if unit == "utf-8" and not self._has_a_byte_each else column
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
    def _has_a_byte_each(self) -> bool:
        """Whether each character is one byte, as in ISO 8859, though two of them may look like one of UTF-8."""
        return self._starts_in("characters")[-1] == len(self._file.content)

    @cached_property
    def _bytewise(self) -> SourceFile:
        """The file, where it is UTF-8; else one of as many bytes: a `?` is each that belongs to no character."""
        content = self._file.content.removeprefix(codecs.BOM_UTF8)
        if content == self._file.utf8:
            return self._file
        plain = _NO_TEXT.sub("?", content.decode("utf-8", "surrogateescape")).encode()
        return SourceFile(b"", plain, executable=False, contexts={})


def _count(text: bytes, each: bytes) -> int:
    return len(text) - len(text.translate(None, each))


def _end_of(file: SourceFile, line: int) -> int:
    """The offset behind the last character of a line."""
    starts = file.line_starts
    return starts[line] - 1 if line < len(starts) else len(file.utf8)
