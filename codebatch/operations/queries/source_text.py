"""The source lines that findings stand in, as the batch has them."""

from __future__ import annotations

import codecs
import contextlib
import json
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import UNSET

from codebatch.errors import ObjectMissing, StoreCorrupt
from codebatch.model.record import Diagnostic
from codebatch.model.text.quantities import count_of
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.query.fields import JsonRecord, typed
from codebatch.query.filters.filters import path_bytes
from codebatch.query.sources.records import BatchRecords


class SourceText(msgspec.Struct, frozen=True):
    """A line without its end, and from where to where in it a finding goes: code points, counted from 0."""

    text: str
    start: int
    end: int


def source_texts(question: BatchQuery, found: Iterable[JsonRecord]) -> list[SourceText | None]:
    """The line where each diagnostic begins; None where it cannot be told: it is no UTF-8, or its content is lost,
    which is noted.

    Raises StoreCorrupt for what is no diagnostic.
    """
    about = [(path_bytes(record), typed(record, Diagnostic)) for record in found]
    paths = sorted({path for path, _ in about})
    content = dict(_contents(question.records, paths))
    if len(content) < len(paths):
        lost = count_of(len(paths) - len(content), "file")
        question.note(f"the source of {lost} is missing or damaged in the store; check it with: codebatch diagnose")
    in_cells = {path for path, diagnostic in about if path in content and diagnostic.cell is not UNSET}
    cells = {path: lines_of_cells(content[path]) for path in sorted(in_cells)}
    return [
        None
        if path not in content
        else _line(content[path], diagnostic)
        if path not in cells
        else _line_of_cell(cells[path], diagnostic)
        for path, diagnostic in about
    ]


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
    return _marked(text, found)


def lines_of_cells(content: bytes) -> list[list[str]]:
    """Return the lines of each cell of a notebook, none if it cannot be read."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        sources = [cell["source"] for cell in json.loads(content)["cells"]]
        return [(each if isinstance(each, str) else "".join(each)).split("\n") for each in sources]
    return []


def _line_of_cell(cells: list[list[str]], found: Diagnostic) -> SourceText | None:
    cell, line = found.cell, found.cell_line
    if cell is UNSET or line is UNSET or not 1 <= cell <= len(cells) or not 1 <= line <= len(cells[cell - 1]):
        return None
    return _marked(cells[cell - 1][line - 1], found)


def _marked(text: str, found: Diagnostic) -> SourceText | None:
    """Return a line with the place of a finding in it."""
    end = found.end_column - 1 if found.end_line == found.line else len(text)
    return SourceText(text, found.column - 1, end) if text.strip() and 0 < found.column <= len(text) + 1 else None
