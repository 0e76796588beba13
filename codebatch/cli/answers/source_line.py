"""The answer of `inspect FILE:LINE`: a line with the surrounding lines, and the records about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from codebatch.cli.framework.answer_printing import emit_document
from codebatch.cli.framework.context import CommandContext
from codebatch.cli.output.records import record_line
from codebatch.model.entry import display_path, path_row
from codebatch.operations.queries.batch_query import Answer
from codebatch.operations.queries.source_line import InspectedLine, SourceLine

_TAB_COLUMNS = 4


def answer_inspected_line(context: CommandContext, answer: Answer[InspectedLine]) -> int:
    """Emit the records about a line. Return the exit status."""
    inspected = answer.result
    records = inspected.inspected.records
    document = {
        **path_row(inspected.inspected.path),
        "batch_id": answer.question.batch.id,
        "line": inspected.line,
        "source": [msgspec.structs.asdict(source_line) for source_line in inspected.source],
        "records": records,
    }
    status = emit_document(context, answer, document, _inspected_line_texts(inspected), name="inspect-line")
    if not records and answer.completeness.is_complete:
        context.note(f"no records at line {inspected.line:,} of file {display_path(inspected.inspected.path)}")
    return status


def _inspected_line_texts(inspected: InspectedLine) -> Iterator[str]:
    yield from _source_lines(inspected.source, inspected.line)
    for record in inspected.inspected.records:
        text = record_line(record)
        # A symbol's text has only its first line. The added last line shows that the symbol encloses the inspected
        # line.
        yield f"{text}, ends at line {record['end_line']}" if record["kind"] == "symbol" else text


def _source_lines(source: Iterable[SourceLine], line: int) -> Iterator[str]:
    for source_line in source:
        mark = ">" if source_line.line == line else " "
        text = source_line.text.removesuffix("\r").expandtabs(_TAB_COLUMNS) + ("…" if source_line.is_cut else "")
        yield f"{mark} {source_line.line:>6}  {text}".rstrip()
