"""Notes that ruff heeds: `# noqa`, `# noqa: CODE, …`, for a file `# ruff: noqa` and `# flake8: noqa`; in any case."""

from __future__ import annotations

import re
from functools import lru_cache

from codebatch_workers.syntax.source import SourceFile

_CODES = rb"(?::[ \t]*((?:[A-Z]+[0-9]+[,\s]*)+))?"
_LINE = re.compile(rb"#[ \t]*noqa" + _CODES, re.IGNORECASE)
_FILE = re.compile(rb"^[ \t]*#[ \t]*(?:ruff|flake8):[ \t]*noqa" + _CODES, re.IGNORECASE | re.MULTILINE)
_CODE = re.compile(rb"[A-Z]+[0-9]+", re.IGNORECASE)


def is_noted_for_ruff(file: SourceFile, line: int, code: str) -> bool:
    """Whether a note asks ruff to leave out what a rule finds on a line, or in the whole file."""
    starts = file.line_starts
    if not 0 < line <= len(starts):
        return False
    on_line = _LINE.search(file.utf8, starts[line - 1], starts[line] if line < len(starts) else len(file.utf8))
    return any(_names(note, code) for note in (on_line, *_of_file(file.utf8)) if note is not None)


@lru_cache(1)
def _of_file(utf8: bytes) -> list[re.Match[bytes]]:
    """The notes that are for all of a file, of which many lines are asked for."""
    return [*_FILE.finditer(utf8)]


def _names(note: re.Match[bytes], code: str) -> bool:
    """A note without a code is for all; one that names the beginning of a code is for all that begin so."""
    return note[1] is None or any(code.startswith(each.decode().upper()) for each in _CODE.findall(note[1]))
