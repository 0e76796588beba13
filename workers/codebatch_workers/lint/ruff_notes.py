"""Notes that ruff heeds: `# noqa` and `# noqa: CODE, …`, for a file `# ruff: noqa`, `# flake8: noqa`; NOQA too."""

from __future__ import annotations

import re

from codebatch_workers.syntax.source import SourceFile

# A colon behind which is no code makes it a note for nothing.
_CODES = rb"(?:([ \t]*:[ \t]*)((?:[A-Z]+[0-9]+[, \t]*)*))?"
_LINE = re.compile(rb"#[ \t]*(?i:noqa)" + _CODES)
_FILE = re.compile(rb"^[ \t]*#[ \t]*(?:ruff|flake8)[ \t]*:[ \t]*(?i:noqa)" + _CODES, re.MULTILINE)
_CODE = re.compile(rb"[A-Z]+[0-9]+")


class RuffNotes:
    """The notes of a file."""

    def __init__(self, file: SourceFile) -> None:
        self._utf8 = file.utf8
        self._starts = [*file.line_starts, len(file.utf8)]
        self._of_file = [_codes(note) for note in _FILE.finditer(file.utf8)]

    def has(self, line: int, code: str) -> bool:
        """Whether one asks ruff to leave out what a rule finds on a line, or in the whole file."""
        if not 0 < line < len(self._starts):
            return False
        note = _LINE.search(self._utf8, self._starts[line - 1], self._starts[line])
        notes = (*self._of_file, *([_codes(note)] if note else []))
        return any(codes is None or code in codes for codes in notes)


def _codes(note: re.Match[bytes]) -> frozenset[str] | None:
    """The codes that a note names; None without a colon, for then it is for all."""
    return None if note[1] is None else frozenset(each.decode() for each in _CODE.findall(note[2]))
