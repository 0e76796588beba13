"""What is written where something was found: the line, the nearest written ones around it, without white space."""

from __future__ import annotations

from collections.abc import Sequence

from codebatch.compare.matching.findings import MatchableFinding
from codebatch.model.record import Diagnostic

# Of blank lines that are passed over on the way to a written one.
_BLANK_MAX = 100


class Texts:
    """The lines of a file; of one that is lost there are none."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = lines
        self._known: dict[int, bytes] = {}
        self._around: dict[int, tuple[bytes, bytes]] = {}

    def finding(self, about: Diagnostic, scope: str) -> MatchableFinding:
        """What pairs a finding in this file."""
        before, behind = self._beside(about.line)
        return MatchableFinding(
            tool=about.tool,
            code=about.code,
            line=about.line,
            column=about.column,
            message=about.message,
            scope=scope,
            text=self._at(about.line),
            before=before,
            behind=behind,
        )

    def _beside(self, line: int) -> tuple[bytes, bytes]:
        """The nearest lines before and behind one where something is written."""
        if line not in self._around:
            self._around[line] = self._written(line, -1), self._written(line, 1)
        return self._around[line]

    def _at(self, line: int) -> bytes:
        """A line without its white space, kept: many findings of one line have one text. Empty where there is none."""
        if line not in self._known:
            self._known[line] = b"".join(self._lines[line - 1].split()) if 0 < line <= len(self._lines) else b""
        return self._known[line]

    def _written(self, line: int, step: int) -> bytes:
        return next(filter(None, map(self._at, range(line + step, line + step * _BLANK_MAX, step))), b"")
