"""The source lines that findings stand in, as the batch has them."""

from __future__ import annotations

import codecs
import contextlib
from collections.abc import Iterable, Iterator

import msgspec

from codebatch.application.asking import Question
from codebatch.errors import ObjectMissing, StoreCorrupt
from codebatch.model.quantities import count_of
from codebatch.model.record import Diagnostic
from codebatch.query.fields import JsonRecord, typed
from codebatch.query.filters import path_bytes
from codebatch.query.records import BatchRecords


class SourceText(msgspec.Struct, frozen=True):
    """A line without its end, and from where to where in it a finding goes: code points, counted from 0."""

    text: str
    start: int
    end: int


def source_texts(question: Question, found: Iterable[JsonRecord]) -> list[SourceText | None]:
    """The line where each diagnostic begins; None where it cannot be told: it is no UTF-8, or its content is lost,
    which is noted.

    Raises StoreCorrupt for what is no diagnostic.
    """
    about = [(path_bytes(record), typed(record, Diagnostic)) for record in found]
    paths = sorted({path for path, _ in about})
    content = dict(_contents(question.records, paths))
    if len(content) < len(paths):
        lost = count_of(len(paths) - len(content), "file")
        question.note(f"the source of {lost} is lost, or damaged, in the store: codebatch diagnose")
    return [_line(content[path], diagnostic) if path in content else None for path, diagnostic in about]


def _contents(records: BatchRecords, paths: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """What is in files, of those that can be read: damage makes no more than a line that is not shown."""
    for path in paths:
        with contextlib.suppress(ObjectMissing, StoreCorrupt):
            entry = records.snapshot.entry(path)
            if entry is not None and entry.kind == "file":
                yield path, records.read_object(entry)


def _line(content: bytes, found: Diagnostic) -> SourceText | None:
    if found.line < 1:
        return None
    try:
        lines = content.removeprefix(codecs.BOM_UTF8).split(b"\n", found.line)
        text = lines[found.line - 1].decode().rstrip("\r")
    except (UnicodeDecodeError, IndexError):
        return None
    if "\0" in text:  # UTF-16, whose bytes may well be UTF-8.
        return None
    end = found.end_column - 1 if found.end_line == found.line else len(text)
    return SourceText(text, found.column - 1, end) if text.strip() and 0 < found.column <= len(text) + 1 else None
