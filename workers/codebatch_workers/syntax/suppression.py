"""Notes in the source that some findings are not wanted: `codebatch: ignore[code, …]`, all codes where none is named.

`ignore` speaks of its own line, `ignore-next-line` of the next, `ignore-file` of the whole file. A code that ends with
a star means all that begin so. They count in comments alone (comments.py), and whoever found something: what a task
says passes `without_unwanted` before it is recorded (execution.py). A huge file has none, for nobody reads it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from codebatch.model.record import Diagnostic, Record
from codebatch_workers.syntax.comments import comments_of

if TYPE_CHECKING:
    from codebatch_workers.syntax.source import SourceFile

_MARKER = b"codebatch: ignore"
_NOTE = re.compile(rb"codebatch: ignore(-next-line|-file)?(?![\w-])(?:\[([^][\n]*)\])?")
_EVERYTHING = ("*",)

Codes = tuple[str, ...]
Told = TypeVar("Told", bound=Record)


class Suppressions(msgspec.Struct, frozen=True):
    """The codes that are not wanted, in the file and on lines."""

    file: list[Codes] = msgspec.field(default_factory=list)
    lines: dict[int, list[Codes]] = msgspec.field(default_factory=dict)

    def has(self, line: int, code: str) -> bool:
        """Whether a finding on a line is not wanted."""
        return any(matches(code, codes) for codes in (*self.file, *self.lines.get(line, ())))


NONE = Suppressions()


def suppressions(file: SourceFile) -> Suppressions:
    """What the notes of a file say. Asks for its tree only where there may be one."""
    utf8 = file.utf8
    if _MARKER not in utf8 or file.file_class == "huge":
        return NONE
    found = Suppressions()
    is_comment = comments_of(file)
    for note in _NOTE.finditer(utf8):
        if not is_comment(note.start()):
            continue
        named = note[2].decode("utf-8", "replace").split(",") if note[2] is not None else _EVERYTHING
        codes = tuple(code.strip() for code in named)
        if note[1] == b"-file":
            found.file.append(codes)
        else:
            found.lines.setdefault(file.line(note.start()) + (note[1] is not None), []).append(codes)
    return found


def look_for_notes(file: SourceFile) -> None:
    """Read the notes of a file that has a tree now, while it is there."""
    if file.is_parsed and _MARKER in file.utf8:
        file.lasting(suppressions)


def without_unwanted(file: SourceFile, records: Sequence[Told]) -> list[Told]:
    """Records about a file, without the diagnostics that its notes do not want."""
    unwanted = file.lasting(suppressions)
    if unwanted is NONE:
        return list(records)
    return [each for each in records if not (isinstance(each, Diagnostic) and unwanted.has(each.line, each.code))]


def matches(code: str, patterns: Sequence[str]) -> bool:
    """Whether a code is among patterns: a code, or the beginning of one and a star."""
    return any(code == each or (each.endswith("*") and code.startswith(each[:-1])) for each in patterns)
