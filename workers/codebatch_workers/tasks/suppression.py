"""Notes in the source that some findings are not wanted: `codebatch: ignore[code, …]`, all codes where none is named.

`ignore` speaks of its own line, `ignore-next-line` of the next, `ignore-file` of the whole file. A code that ends with
a star means all that begin so. They count wherever they stand, for a file without a grammar has no comments to look in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from codebatch_workers.source import SourceFile

_MARKER = b"codebatch: ignore"
_NOTE = re.compile(rb"codebatch: ignore(-next-line|-file)?(?![\w-])(?:\[([^\]\n]*)\])?")
_EVERYTHING = ("*",)

Codes = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Suppressions:
    """The codes that are not wanted, in the file and on lines."""

    file: list[Codes] = field(default_factory=list)
    lines: dict[int, list[Codes]] = field(default_factory=dict)

    def has(self, line: int, code: str) -> bool:
        """Whether a finding on a line is not wanted."""
        return any(matches(code, codes) for codes in (*self.file, *self.lines.get(line, ())))


NONE = Suppressions()


def suppressions(file: SourceFile) -> Suppressions:
    """What the notes of a file say."""
    utf8 = file.utf8
    if _MARKER not in utf8:
        return NONE
    found = Suppressions()
    for note in _NOTE.finditer(utf8):
        named = note[2].decode("utf-8", "replace").split(",") if note[2] is not None else _EVERYTHING
        codes = tuple(code.strip() for code in named)
        if note[1] == b"-file":
            found.file.append(codes)
        else:
            found.lines.setdefault(file.line(note.start()) + (note[1] is not None), []).append(codes)
    return found


def matches(code: str, patterns: Sequence[str]) -> bool:
    """Whether a code is among patterns: a code, or the beginning of one and a star."""
    return any(code == each or (each.endswith("*") and code.startswith(each[:-1])) for each in patterns)
