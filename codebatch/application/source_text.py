"""The source line that a finding stands in, as the batch has it."""

from __future__ import annotations

import codecs
from typing import NamedTuple

from codebatch.application.asking import Question
from codebatch.errors import ObjectMissing, StoreCorrupt
from codebatch.model.record import Diagnostic
from codebatch.query.fields import JsonRecord, typed
from codebatch.query.filters import path_bytes


class SourceText(NamedTuple):
    """A line without its end, and from where to where in it a finding goes: code points, counted from 0."""

    text: str
    start: int
    end: int


def source_text(question: Question, record: JsonRecord) -> SourceText | None:
    """The line where a diagnostic begins; None where it cannot be told: it is no UTF-8, or its content is lost."""
    about = typed(record, Diagnostic)
    line, column = about.line, about.column
    try:
        entry = question.records.snapshot.entry(path_bytes(record))
        if entry is None or entry.kind != "file":
            return None
        content = question.records.read_object(entry)
        lines = content.removeprefix(codecs.BOM_UTF8).split(b"\n", line)
        text = lines[line - 1].decode().rstrip("\r")
    except (ObjectMissing, StoreCorrupt, UnicodeDecodeError, IndexError):
        return None
    end = about.end_column - 1 if about.end_line == line else len(text)
    return SourceText(text, column - 1, end) if text.strip() and 0 < column <= len(text) + 1 else None
