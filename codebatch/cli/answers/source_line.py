"""`inspect FILE:LINE`: a line with those around it, and what is told of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from codebatch.cli.framework.answers import emit_document
from codebatch.cli.framework.context import CommandContext
from codebatch.cli.output.records import record_line
from codebatch.model.entry import display_path, path_row
from codebatch.operations.queries.batch_query import Answer
from codebatch.operations.queries.source_line import InspectedLine, SourceLine

_TAB_COLUMNS = 4


def answer_line(answering: CommandContext, answer: Answer[InspectedLine]) -> int:
    """Tell what a batch says of a line; returns the exit status."""
    found = answer.found
    records = found.inspected.records
    document = {
        **path_row(found.inspected.path),
        "batch_id": answer.question.batch.id,
        "line": found.line,
        "source": [msgspec.structs.asdict(each) for each in found.source],
        "records": records,
    }
    status = emit_document(answering, answer, document, _lines(found), name="inspect-line")
    if not records and answer.whole.is_complete:
        answering.note(f"no records at line {found.line:,} of {display_path(found.inspected.path)}")
    return status


def _lines(found: InspectedLine) -> Iterator[str]:
    yield from _source_lines(found.source, found.line)
    for record in found.inspected.records:
        told = record_line(record)
        # A symbol is told by where it begins, and here it matters how far it goes.
        yield f"{told}, ends at line {record['end_line']}" if record["kind"] == "symbol" else told


def _source_lines(source: Iterable[SourceLine], line: int) -> Iterator[str]:
    for each in source:
        mark = ">" if each.line == line else " "
        text = each.text.removesuffix("\r").expandtabs(_TAB_COLUMNS) + ("…" if each.is_cut else "")
        yield f"{mark} {each.line:>6}  {text}".rstrip()
