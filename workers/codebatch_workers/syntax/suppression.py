"""Suppression comments: `codebatch: ignore[code, …]`. Without codes, all findings are suppressed.

`ignore` applies to its own line, `ignore-next-line` to the next line, and `ignore-file` to the whole file. A code that
ends with `*` matches all codes with this prefix. The text has an effect only in a comment (comments.py). Suppressions
apply to the findings of all tasks: before records are stored, they pass through `exclude_suppressed` (execution.py). In
huge files, suppression comments have no effect.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from codebatch.model.record import Diagnostic, Record
from codebatch_workers.syntax.comments import comment_predicate

if TYPE_CHECKING:
    from codebatch_workers.syntax.source import SourceFile

SUPPRESSION_MARKER = b"codebatch: ignore"
_SUPPRESSION_COMMENT = re.compile(rb"codebatch: ignore(-next-line|-file)?(?![\w-])(?:\[([^][\n]*)\])?")
_ALL_CODES = ("*",)
# Rules about suppression comments. Otherwise a comment would suppress the finding about itself.
_CODES_ABOUT_SUPPRESSIONS = frozenset(
    {"suppression-comment", "suppression-date", "suppression-until", "suppression-without-reason"}
)

SuppressedCodes = tuple[str, ...]
RecordT = TypeVar("RecordT", bound=Record)


class FileSuppressions(msgspec.Struct, frozen=True):
    """The codes that are suppressed in the whole file, and the codes that are suppressed on each line."""

    file: list[SuppressedCodes] = msgspec.field(default_factory=list)
    lines: dict[int, list[SuppressedCodes]] = msgspec.field(default_factory=dict)

    def suppresses(self, line: int, code: str) -> bool:
        """Return whether a finding with this line and code is suppressed by a comment."""
        patterns = (*self.file, *self.lines.get(line, ()))
        return code not in _CODES_ABOUT_SUPPRESSIONS and any(matches_any_pattern(code, codes) for codes in patterns)


NO_SUPPRESSIONS = FileSuppressions()


def file_suppressions(file: SourceFile) -> FileSuppressions:
    """Return the suppressions in the comments of a file. The tree is needed only if the file contains the marker."""
    utf8 = file.utf8
    if SUPPRESSION_MARKER not in utf8 or file.file_class == "huge":
        return NO_SUPPRESSIONS
    result = FileSuppressions()
    is_comment = comment_predicate(file)
    for note in _SUPPRESSION_COMMENT.finditer(utf8):
        if not is_comment(note.start()):
            continue
        named = note[2].decode("utf-8", "replace").split(",") if note[2] is not None else _ALL_CODES
        codes = tuple(code.strip() for code in named)
        if note[1] == b"-file":
            result.file.append(codes)
        else:
            result.lines.setdefault(file.line(note.start()) + (note[1] is not None), []).append(codes)
    return result


def may_have_suppressions(file: SourceFile) -> None:
    """Read the file's suppressions and cache them. This must be called while the tree of the file is in memory."""
    if file.is_parsed and SUPPRESSION_MARKER in file.utf8:
        file.derived_persistently(file_suppressions)


def exclude_suppressed(file: SourceFile, records: Sequence[RecordT]) -> list[RecordT]:
    """Return the records of a file, without findings that comments suppress."""
    unwanted = file.derived_persistently(file_suppressions)
    if unwanted is NO_SUPPRESSIONS:
        return list(records)
    return [
        record
        for record in records
        if not (isinstance(record, Diagnostic) and unwanted.suppresses(record.line, record.code))
    ]


def matches_any_pattern(code: str, patterns: Sequence[str]) -> bool:
    """Return whether a code equals one of the patterns, or begins with a pattern that ends with `*`."""
    return any(code == pattern or (pattern.endswith("*") and code.startswith(pattern[:-1])) for pattern in patterns)
