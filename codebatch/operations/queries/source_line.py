"""What stands at a line of a file: its source as the batch has it, what encloses the line, and what is told of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import cast

import msgspec

from codebatch.errors import InvalidInput, ObjectMissing
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import count_of
from codebatch.operations import ignore_note
from codebatch.operations.queries import records as questions
from codebatch.operations.queries.batch_query import Answer, BatchQuery, try_find_item
from codebatch.operations.queries.records import FileRecords
from codebatch.plugins.worker_services import load_question
from codebatch.protocol.launch import SOURCE_MODULE
from codebatch.query.fields import JsonRecord
from codebatch.query.filters.filters import RecordFilter

SOURCE_LINES_AROUND = 3
SOURCE_CHARACTERS_MAX = 400

_NUMBERED = re.compile(r"(.+):([0-9]{1,9}):?\Z", re.DOTALL)
_TOLD = ("symbol", "diagnostic", "edge", "metric", "duplicate", "failure")
"""In this order, if at all."""


class SourceLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of source without its line end. If `is_cut` is set, `text` is only the beginning of a long line."""

    line: int
    text: str
    is_cut: bool


class InspectedLine(msgspec.Struct, frozen=True):
    """What a batch says of a line, and the lines around it; none of a file that is binary, or whose content is gone."""

    inspected: FileRecords
    line: int
    source: tuple[SourceLine, ...]


def split_place(question: BatchQuery, given: str) -> tuple[str, int | None]:
    """A file and a line, of `FILE:LINE`, or `FILE:LINE:COLUMN` as findings have it; of what is a file, no line.

    Raises StoreCorrupt.
    """
    path, line = given, None
    for _ in range(2):
        match = _NUMBERED.match(path)
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
    """What a batch says of a line: of some kinds, all where none is named.

    The records are the symbols that enclose it, the outermost first, the findings, the edges that begin there, the
    numbers of the functions around it, the duplicates that it is in, and failures of the file. Raises InvalidInput,
    also where the file has no such line, or StoreCorrupt.
    """
    answer = questions.inspect(question, path, RecordFilter(), kinds=kinds)
    every, whole = answer.found, answer.whole
    source: tuple[SourceLine, ...] = ()
    try:
        source = _source(question, every, line)
    except ObjectMissing as error:
        question.note(f"source of {display_path(every.path)} not shown: {error.message}")
        whole = msgspec.structs.replace(whole, lost=1)
    found = msgspec.structs.replace(every, records=list(_at(every.records, line, kinds)))
    return Answer(question=question, found=InspectedLine(found, line, source), whole=whole)


def _source(question: BatchQuery, found: FileRecords, line: int) -> tuple[SourceLine, ...]:
    """The lines around one. Raises ObjectMissing, and InvalidInput where there is no such line."""
    shown = display_path(found.path)
    if line < 1:
        raise InvalidInput(f"{shown} has no line {line}", hint="lines are numbered from 1")
    first = max(line - SOURCE_LINES_AROUND, 1)
    count, source = read_lines(question, found.path, found.item, first, line + SOURCE_LINES_AROUND)
    if count is None:
        question.note(f"{shown} is a binary file without lines")
    elif line > count:
        raise InvalidInput(f"{shown} has no line {line:,}", hint=f"the file has {count_of(count, 'line')} in the batch")
    return source


def read_lines(
    question: BatchQuery, path: bytes, item: int, first: int, last: int
) -> tuple[int | None, tuple[SourceLine, ...]]:
    """How many lines a file has, None where it is binary; and some of them, as it was frozen. Raises ObjectMissing."""
    entry = question.records.snapshot.entry(path)
    assert entry is not None, "it is an item of the batch"
    contexts = question.records.plan.context_of(item)
    content = question.records.read_object(entry)
    ask = load_question("source_lines", SOURCE_MODULE)
    told = cast("dict[str, object]", ask(path, content, contexts, first, last))
    if told["is_binary"]:
        return None, ()
    lines = cast("list[str]", told["lines"])
    return cast("int", told["count"]), tuple(
        SourceLine(line=number, text=text[:SOURCE_CHARACTERS_MAX], is_cut=len(text) > SOURCE_CHARACTERS_MAX)
        for number, text in enumerate(lines, first)
    )


def _at(records: Collection[JsonRecord], line: int, kinds: Collection[str]) -> Iterable[JsonRecord]:
    """Of the records of a file those that are of a line, kind by kind."""
    around = [record for record in records if record["kind"] == "symbol" and _first(record) <= line <= _last(record)]
    around.sort(key=lambda record: (_first(record), -_last(record)))
    functions = {(record["qualified"], record["line"]) for record in around}

    def is_there(record: JsonRecord) -> bool:
        match record["kind"]:
            case "symbol" | "diagnostic" | "duplicate":
                return _first(record) <= line <= _last(record)
            case "metric":
                return (record.get("symbol"), record.get("line", 1)) in functions
            case "failure":
                return True
            case _:
                return _first(record) == line

    for kind in _TOLD:
        if not kinds or kind in kinds:
            of_kind = around if kind == "symbol" else (record for record in records if record["kind"] == kind)
            yield from (record for record in of_kind if is_there(record))


def _first(record: JsonRecord) -> int:
    line = record.get("line", 1)
    return line if isinstance(line, int) else 1


def _last(record: JsonRecord) -> int:
    """The last line on which something of a record stands: its end is behind it, maybe at the beginning of a line."""
    end = record.get("end_line")
    if not isinstance(end, int):
        return _first(record)
    is_behind = record.get("end_column", 1) == 1
    return max(end - is_behind, _first(record))
