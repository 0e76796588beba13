"""The texts by which a finding is matched: its line, and the nearest non-blank lines around it, without white space."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from codebatch.compare.matching.findings import ADJACENT_LINES, MatchableFinding
from codebatch.model.record import Diagnostic

# The maximum distance in lines to the nearest non-blank line.
_BLANK_LINES_MAX = 100


class FileTexts:
    """The lines of a file. If the content of the file is lost, there are no lines."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = lines
        self._text_by_line: dict[int, bytes] = {}
        self._nearest_by_line: dict[int, tuple[tuple[bytes, ...], tuple[bytes, ...]]] = {}

    def make_matchable(self, about: Diagnostic, scope: str) -> MatchableFinding:
        """Return the data by which a finding of this file is matched."""
        before, behind = self._nearest_texts(about.line)
        return MatchableFinding(
            tool=about.tool,
            code=about.code,
            line=about.line,
            column=about.column,
            message=about.message,
            scope=scope,
            text=self._line_text(about.line),
            before=before,
            behind=behind,
        )

    def _nearest_texts(self, line: int) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
        """Return the nearest non-blank lines before and after a line, without white space, the nearest first."""
        if line not in self._nearest_by_line:
            self._nearest_by_line[line] = self._nearest_on_side(line, -1), self._nearest_on_side(line, 1)
        return self._nearest_by_line[line]

    def _line_text(self, line: int) -> bytes:
        """Return a line without white space. Return an empty text if there is no such line.

        Results are cached, because several findings can need the same line.
        """
        if line not in self._text_by_line:
            self._text_by_line[line] = b"".join(self._lines[line - 1].split()) if 0 < line <= len(self._lines) else b""
        return self._text_by_line[line]

    def _nearest_on_side(self, line: int, step: int) -> tuple[bytes, ...]:
        texts = filter(None, map(self._line_text, range(line + step, line + step * _BLANK_LINES_MAX, step)))
        return tuple(islice(texts, ADJACENT_LINES))
