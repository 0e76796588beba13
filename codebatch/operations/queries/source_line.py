"""Query for one line of a file: the source around it, the definitions that enclose it, and its records."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import cast

import msgspec

from codebatch.errors import InvalidInput, ObjectMissing
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import count_text
from codebatch.operations import ignore_note
from codebatch.operations.queries import records as questions
from codebatch.operations.queries.batch_query import Answer, BatchQuery, try_find_item
from codebatch.operations.queries.records import FileRecords
from codebatch.plugins.worker_services import source_services
from codebatch.query.fields import JsonRecord
from codebatch.query.filters.filters import RecordFilter, path_bytes

SOURCE_LINES_AROUND = 3
SOURCE_CHARACTERS_MAX = 400

_PATH_WITH_LINE = re.compile(r"(.+):([0-9]{1,9}):?\Z", re.DOTALL)
_KINDS_SHOWN = ("symbol", "diagnostic", "edge", "metric", "duplicate", "failure")
"""Record types about a line, in output order."""


class SourceLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of source without its line end. If `is_cut` is set, `text` is only the beginning of a long line."""

    line: int
    text: str
    is_cut: bool


class InspectedLine(msgspec.Struct, frozen=True):
    """The records about a line, and the source lines around it.

    `source` is empty if the file is binary or its content is missing.
    """

    inspected: FileRecords
    line: int
    source: tuple[SourceLine, ...]


def split_place(question: BatchQuery, argument: str) -> tuple[str, int | None]:
    """Split `FILE:LINE` or `FILE:LINE:COLUMN` into a file and a line.

    If a file has the whole text as its name, return this name and None. Raises StoreCorrupt.
    """
    path, line = argument, None
    for _ in range(2):
        match = _PATH_WITH_LINE.match(path)
        if match is None or _is_file(question, path):
            break
        path, line = match[1], int(match[2])
    return path, line


def _is_file(question: BatchQuery, path: str) -> bool:
    try:
        return try_find_item(question.records, path, ignore_note) is not None
    except InvalidInput:
        return False


def inspect_line(question: BatchQuery, path: str, line: int, *, kinds: tuple[str, ...] = ()) -> Answer[InspectedLine]:
    """Return the records about a line. `kinds` are the requested record types, by default all.

    The records are:
    - symbols that enclose the line, outermost first
    - findings and duplicates that include the line
    - edges that begin at the line
    - metrics of the enclosing functions
    - failures of the file

    Raises InvalidInput, also if the file has fewer lines, or StoreCorrupt.
    """
    answer = questions.inspect_file(question, path, RecordFilter(), kinds=kinds)
    file_records, whole = answer.result, answer.completeness
    source: tuple[SourceLine, ...] = ()
    try:
        source = _source_around(question, file_records, line)
    except ObjectMissing as error:
        question.note(f"source of {display_path(file_records.path)} not shown: {error.message}")
        whole = msgspec.structs.replace(whole, lost=1)
    line_records = msgspec.structs.replace(
        file_records, records=list(_records_at_line(file_records.records, line, kinds))
    )
    return Answer(question=question, result=InspectedLine(line_records, line, source), completeness=whole)


def _source_around(question: BatchQuery, file_records: FileRecords, line: int) -> tuple[SourceLine, ...]:
    """Return the source lines around a line. Raises ObjectMissing, and InvalidInput if the file has fewer lines."""
    displayed_path = display_path(file_records.path)
    if line < 1:
        raise InvalidInput(f"{displayed_path} has no line {line}", hint="lines are numbered from 1")
    first = max(line - SOURCE_LINES_AROUND, 1)
    count, source = read_lines(question, file_records.path, file_records.item, first, line + SOURCE_LINES_AROUND)
    if count is None:
        question.note(f"{displayed_path} is a binary file without lines")
    elif line > count:
        raise InvalidInput(
            f"{displayed_path} has no line {line:,}", hint=f"in the batch, the file has {count_text(count, 'line')}"
        )
    return source


def read_lines(
    question: BatchQuery, path: bytes, item: int, first: int, last: int
) -> tuple[int | None, tuple[SourceLine, ...]]:
    """Return the number of lines of a file, and its lines from `first` to `last`, as they are in the snapshot.

    For a binary file, the number is None and there are no lines. Raises ObjectMissing.
    """
    entry = question.records.snapshot.entry(path)
    assert entry is not None, "it is an item of the batch"
    contexts = question.records.plan.item_contexts(item)
    content = question.records.read_object(entry)
    response = source_services().source_lines(path, content, contexts, first, last)
    if response["is_binary"]:
        return None, ()
    lines = cast("list[str]", response["lines"])
    return cast("int", response["count"]), tuple(
        SourceLine(line=number, text=text[:SOURCE_CHARACTERS_MAX], is_cut=len(text) > SOURCE_CHARACTERS_MAX)
        for number, text in enumerate(lines, first)
    )


def read_line_texts(question: BatchQuery, row: JsonRecord, lines: Collection[int]) -> dict[int, str]:
    """Return the texts of some lines of the file that a record is about, without white space at their ends.

    Return an empty dict if the file is binary, or if its content is missing from the store.
    """
    path = path_bytes(row)
    item = question.records.find_items([path])[path]
    try:
        _, source = read_lines(question, path, item, min(lines), max(lines))
    except ObjectMissing:
        return {}
    return {line.line: line.text.strip() for line in source if line.line in lines}


def _records_at_line(records: Collection[JsonRecord], line: int, kinds: Collection[str]) -> Iterable[JsonRecord]:
    """Yield the records of a file that are about a line, grouped by record type."""
    enclosing = [
        record for record in records if record["kind"] == "symbol" and _first_line(record) <= line <= _last_line(record)
    ]
    enclosing.sort(key=lambda record: (_first_line(record), -_last_line(record)))
    functions = {(record["qualified"], record["line"]) for record in enclosing}

    def concerns_line(record: JsonRecord) -> bool:
        match record["kind"]:
            case "symbol" | "diagnostic" | "duplicate":
                return _first_line(record) <= line <= _last_line(record)
            case "metric":
                return (record.get("symbol"), record.get("line", 1)) in functions
            case "failure":
                return True
            case _:
                return _first_line(record) == line

    for kind in _KINDS_SHOWN:
        if not kinds or kind in kinds:
            records_of_kind = (
                enclosing if kind == "symbol" else (record for record in records if record["kind"] == kind)
            )
            yield from (record for record in records_of_kind if concerns_line(record))


def _first_line(record: JsonRecord) -> int:
    line = record.get("line", 1)
    return line if isinstance(line, int) else 1


def _last_line(record: JsonRecord) -> int:
    """Return the last line of a record.

    The end of a record is exclusive. So if the end is in column 1, the last line is the line before.
    """
    end = record.get("end_line")
    if not isinstance(end, int):
        return _first_line(record)
    ends_at_line_start = record.get("end_column", 1) == 1
    return max(end - ends_at_line_start, _first_line(record))
