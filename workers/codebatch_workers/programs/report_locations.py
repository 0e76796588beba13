"""Conversion of the locations in reports to locations of records. Programs count columns in different units."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left, bisect_right
from functools import cached_property, partial
from io import BytesIO
from itertools import accumulate
from typing import NamedTuple

from codebatch.interchange.reports import ImportedFinding, ImportedSpan
from codebatch.model.analysis.report_formats import ColumnUnit
from codebatch_workers.syntax.language.encodings import WIDE_MARKS
from codebatch_workers.syntax.source import SourceFile

_ASTRAL_CHARACTER = re.compile("[\U00010000-\U0010ffff]")
# Bytes that are not UTF-8, as `surrogateescape` decodes them; and NUL, because a text with NUL would count as binary.
_NON_TEXT_CHARACTER = re.compile("[\0\udc80-\udcff]")
# Bytes in UTF-8 texts. The first constant has the bytes that continue a character. The second one has the bytes that
# begin a character of two UTF-16 units.
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))
_ASTRAL_BYTES = bytes(range(0xF0, 0x100))
# For encodings with code units of 4 and of 2 bytes: the unit in which positions are counted, and its size in bytes. A
# byte order mark is one unit.
_WIDE_UNITS: dict[int, tuple[ColumnUnit, int]] = {4: ("characters", 4), 2: ("utf-16", 2)}


class RecordLocation(NamedTuple):
    """A location in the form of records.

    Lines and columns count from 1, columns are code points, and the end is exclusive.
    """

    line: int
    column: int
    end_line: int
    end_column: int


class LocationConverter:
    """A converter for the locations in one file. It caches data about each line."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        self._lines = len(file.line_starts)
        self._ends: dict[int, int] = {}
        self._astral: dict[int, list[int]] = {}
        self._starts_by_unit: dict[ColumnUnit, list[int]] = {}

    def find(self, reported: ImportedFinding) -> RecordLocation | None:
        """Convert a location. Return None if the file does not have the line, or ends before the span begins.

        Missing and invalid parts are replaced:

        - Without line and span, the location begins in line 1.
        - Without a column, it begins at the start of the line.
        - Without an end, it ends at the end of the line.
        - A column after the end of its line becomes the end of the line.
        - An end before the start becomes the start.
        - A span that exceeds the file ends with the file.
        """
        if reported.span is not None and not reported.line:
            return self._locate_span(reported.span, reported.unit)
        line = reported.line or 1
        if not 1 <= line <= self._lines:
            return None
        end_line = min(reported.end_line, self._lines) if reported.end_line > 0 else line
        start = line, self._convert_column(line, reported.column, reported.unit, default=1)
        end = (
            end_line,
            self._convert_column(end_line, reported.end_column, reported.unit, default=self._line_end_column(end_line)),
        )
        return RecordLocation(*start, *max(start, end))

    def _locate_span(self, span: ImportedSpan, unit: ColumnUnit) -> RecordLocation | None:
        locate = self._from_byte_offset if span.is_of_bytes else partial(self._from_unit_offset, unit)
        start = locate(span.start)
        if start is None:
            return None
        end = locate(span.start + span.length) or self._file.position(len(self._file.utf8))
        return RecordLocation(*start, *max(start, end))

    def _from_unit_offset(self, unit: ColumnUnit, offset: int) -> tuple[int, int] | None:
        """Return line and column of an offset in units. The offset is in the text without byte order mark.

        Return None if the offset is after the end of the text.
        """
        starts = self._line_starts(unit)
        if offset > starts[-1]:
            return None
        line = bisect_right(starts, offset, hi=self._lines)
        return line, self._convert_column(line, offset - starts[line - 1] + 1, unit, default=1)

    def _line_starts(self, unit: ColumnUnit) -> list[int]:
        """Return the number of units before each line. The last value is the number of all units."""
        if unit not in self._starts_by_unit:
            counted_twice = _ASTRAL_BYTES if unit == "utf-16" else b""
            lines = BytesIO(self._file.utf8)
            sizes = (
                len(line.translate(None, _CONTINUATION_BYTES)) + _count_bytes(line, counted_twice) for line in lines
            )
            self._starts_by_unit[unit] = list(accumulate(sizes, initial=0))
        return self._starts_by_unit[unit]

    def _from_byte_offset(self, offset: int) -> tuple[int, int] | None:
        """Return line and column of a byte offset in the stored file, or None if the offset is after the end.

        The offset includes the byte order mark. An offset within a character is treated as the offset of the character.
        """
        content = self._file.content
        if offset > len(content):
            return None
        if self._file.is_binary:
            return 1, 1
        if content.startswith(WIDE_MARKS):
            unit, size = _WIDE_UNITS[4 if self._file.encoding.startswith("utf-32") else 2]
            return self._from_unit_offset(unit, max(offset // size - 1, 0))
        if self._is_single_byte:
            return self._from_unit_offset("characters", offset)
        file = self._single_byte_file
        offset -= len(content) - len(file.utf8)
        line = file.line(max(offset, 0))
        return line, self._from_utf8(line, offset - file.line_starts[line - 1] + 1) if offset > 0 else 1

    def _convert_column(self, line: int, column: int, unit: ColumnUnit, *, default: int) -> int:
        if column < 1:
            return default
        if not self._file.is_ascii:
            column = self._from_utf16(line, column) if unit == "utf-16" else column
            column = self._from_utf8(line, column) if unit == "utf-8" and not self._is_single_byte else column
        return min(column, self._line_end_column(line))

    def _line_end_column(self, line: int) -> int:
        """Return the column after the last character of a line."""
        if line not in self._ends:
            self._ends[line] = self._file.position(_line_end(self._file, line))[1]
        return self._ends[line]

    def _from_utf16(self, line: int, column: int) -> int:
        """Convert a UTF-16 column to code points. Each earlier character of two units decreases the column by one."""
        if line not in self._astral:
            text = self._file.utf8[self._file.line_starts[line - 1] : _line_end(self._file, line)].decode("utf-8")
            self._astral[line] = [
                match.start() + before for before, match in enumerate(_ASTRAL_CHARACTER.finditer(text))
            ]
        return column - bisect_left(self._astral[line], column - 1)

    def _from_utf8(self, line: int, column: int) -> int:
        """Convert a column, counted in bytes of the stored file, to code points.

        A byte within a character is converted like the first byte of the character.
        """
        file = self._single_byte_file
        if line > len(file.line_starts):
            return column
        start, end = file.line_starts[line - 1], _line_end(file, line)
        offset = min(start + column - 1, end)
        while start < offset < end and file.utf8[offset] & 0xC0 == 0x80:
            offset -= 1
        return file.position(offset)[1]

    @cached_property
    def _is_single_byte(self) -> bool:
        """Whether the file's encoding has one byte per character, like ISO 8859.

        Two bytes of such an encoding can look like one character in UTF-8, so the file is not decoded as UTF-8.
        """
        return self._line_starts("characters")[-1] == len(self._file.content)

    @cached_property
    def _single_byte_file(self) -> SourceFile:
        """The file itself if it is UTF-8.

        Otherwise, a text of equal size, in which `?` replaces bytes that are not UTF-8.
        """
        content = self._file.content.removeprefix(codecs.BOM_UTF8)
        if content == self._file.utf8:
            return self._file
        plain = _NON_TEXT_CHARACTER.sub("?", content.decode("utf-8", "surrogateescape")).encode()
        return SourceFile(b"", plain, executable=False, contexts={})


def _count_bytes(text: bytes, counted: bytes) -> int:
    return len(text) - len(text.translate(None, counted))


def _line_end(file: SourceFile, line: int) -> int:
    """Return the offset after the last character of a line."""
    starts = file.line_starts
    return starts[line] - 1 if line < len(starts) else len(file.utf8)
