"""The source lines in which findings begin, from the snapshot of the batch."""

from __future__ import annotations

import codecs
import contextlib
import json
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import UNSET

from codebatch.errors import ObjectMissing, StoreCorrupt
from codebatch.model.record import Diagnostic
from codebatch.model.text.quantities import count_text
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.query.fields import JsonRecord, as_typed_record
from codebatch.query.filters.filters import path_bytes
from codebatch.query.sources.records import BatchRecords


class SourceText(msgspec.Struct, frozen=True):
    """A source line without its line end, and the part of it that a finding covers.

    The range is given in code points, counted from 0; its end is exclusive.
    """

    text: str
    start: int
    end: int


def source_texts(question: BatchQuery, records: Iterable[JsonRecord]) -> list[SourceText | None]:
    """Return for each diagnostic the source line where it begins, in the same order.

    An element is None if the file is not UTF-8 or its content is missing. Missing content is noted. Raises StoreCorrupt
    if a record is not a diagnostic.
    """
    diagnostics = [(path_bytes(record), as_typed_record(record, Diagnostic)) for record in records]
    paths = sorted({path for path, _ in diagnostics})
    content = dict(_iter_contents(question.records, paths))
    if len(content) < len(paths):
        lost = count_text(len(paths) - len(content), "file")
        question.note(f"the source of {lost} is missing or damaged in the store; check it with: codebatch diagnose")
    notebook_paths = {path for path, diagnostic in diagnostics if path in content and diagnostic.cell is not UNSET}
    cells = {path: notebook_cell_lines(content[path]) for path in sorted(notebook_paths)}
    return [
        None
        if path not in content
        else _source_line(content[path], diagnostic)
        if path not in cells
        else _cell_line(cells[path], diagnostic)
        for path, diagnostic in diagnostics
    ]


def _iter_contents(records: BatchRecords, paths: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the path and content of each readable file. Missing and damaged files are skipped."""
    for path in paths:
        with contextlib.suppress(ObjectMissing, StoreCorrupt):
            entry = records.snapshot.entry(path)
            if entry is not None and entry.kind == "file":
                yield path, records.read_object(entry)


def _source_line(content: bytes, diagnostic: Diagnostic) -> SourceText | None:
    if diagnostic.line < 1:
        return None
    try:
        lines = content.removeprefix(codecs.BOM_UTF8).split(b"\n", diagnostic.line)
        text = lines[diagnostic.line - 1].decode().rstrip("\r")
    except (UnicodeDecodeError, IndexError):
        return None
    if "\0" in text:  # UTF-16 text that consists of ASCII characters is also valid UTF-8, but with NUL characters.
        return None
    return _mark_range(text, diagnostic)


def notebook_cell_lines(content: bytes) -> list[list[str]]:
    """Return the lines of each code cell of a notebook, or an empty list if the notebook is invalid."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        sources = [cell["source"] for cell in json.loads(content)["cells"]]
        return [(source if isinstance(source, str) else "".join(source)).split("\n") for source in sources]
    return []


def _cell_line(cells: list[list[str]], diagnostic: Diagnostic) -> SourceText | None:
    cell, line = diagnostic.cell, diagnostic.cell_line
    if cell is UNSET or line is UNSET or not 1 <= cell <= len(cells) or not 1 <= line <= len(cells[cell - 1]):
        return None
    return _mark_range(cells[cell - 1][line - 1], diagnostic)


def _mark_range(text: str, diagnostic: Diagnostic) -> SourceText | None:
    """Return a source line with the part of it that a finding covers.

    Return None if the line is blank or the column is out of range.
    """
    end = diagnostic.end_column - 1 if diagnostic.end_line == diagnostic.line else len(text)
    return (
        SourceText(text, diagnostic.column - 1, end)
        if text.strip() and 0 < diagnostic.column <= len(text) + 1
        else None
    )
