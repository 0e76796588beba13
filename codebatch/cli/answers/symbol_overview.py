"""The overview of a symbol that `inspect NAME` prints."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from codebatch.cli.answers.empty_answers import doubt_lines, none_text
from codebatch.cli.framework.answer_printing import emit_document
from codebatch.cli.framework.context import CommandContext
from codebatch.cli.output.records import implementation_line, record_line
from codebatch.cli.output.widths import fit_line, terminal_width
from codebatch.model.text.quantities import count_text
from codebatch.operations.names.symbol_overview import SymbolOverview
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.operations.queries.source_line import read_line_texts
from codebatch.query.fields import JsonRecord, record_path

ROWS_SHOWN = 6
"""Number of rows of each list that are shown."""


def answer_symbol(context: CommandContext, answer: Answer[SymbolOverview], name: str) -> int:
    """Print the overview of a symbol. Return the exit status."""
    document = {
        **{member: getattr(answer.result, member) for member in SymbolOverview.__struct_fields__},
        "coverage": answer.coverage,
        "not_searched": answer.not_searched,
    }
    width = terminal_width()
    lines = (fit_line(line, width) for line in _overview_lines(answer, name))
    status = emit_document(context, answer, document, lines, name="inspect-symbol")
    for line in doubt_lines(answer):
        context.report(line)
    return status


def _overview_lines(answer: Answer[SymbolOverview], name: str) -> Iterator[str]:
    overview, quoted = answer.result, shlex.quote(name)
    total = len(overview.definitions)
    yield from _list_lines(
        _definition_lines(answer.question, overview.definitions), total, f"codebatch def {quoted}", ""
    )
    callers = overview.callers
    if callers:
        files = len({record_path(row) for row in callers})
        yield f"callers: {count_text(len(callers), 'function')} in {count_text(files, 'file')}"
        yield from _list_lines(map(_caller_line, callers), len(callers), f"codebatch callers {quoted}")
    elif answer.coverage is not None:
        is_certain = not answer.coverage.doubt
        yield f"callers: {none_text('calls', answer.coverage, answer.completeness) if is_certain else 'none found'}"
    found = overview.implementations
    if found:
        yield f"implementations: {len(found):,}"
        yield from _list_lines(map(implementation_line, found), len(found), f"codebatch implementations {quoted}")
    yield f"calls: {count_text(len(overview.calls), 'name')}" if overview.calls else "calls: none"
    yield from _list_lines(map(_call_line, overview.calls), len(overview.calls), f"codebatch inspect {quoted} --json")
    yield f"tests: {count_text(len(overview.tests), 'file')}" if overview.tests else "tests: none found"
    yield from _list_lines(map(_test_line, overview.tests), len(overview.tests), f"codebatch inspect {quoted} --json")
    if overview.followed < total:
        yield f"calls and tests are those of the first {overview.followed} definitions; give a qualified name"


def _list_lines(lines: Iterable[str], total: int, command: str, indent: str = "  ") -> Iterator[str]:
    """Yield the first lines of a list. If it has more, yield their number and the command that lists all."""
    for line, _ in zip(lines, range(ROWS_SHOWN), strict=False):
        yield f"{indent}{line}"
    if total > ROWS_SHOWN:
        yield f"{indent}… and {total - ROWS_SHOWN:,} more; see: {command}"


def _definition_lines(question: BatchQuery, definitions: Sequence[JsonRecord]) -> Iterator[str]:
    """Yield a line for each definition. If there is only one, its source line follows."""
    yield from map(record_line, definitions)
    if len(definitions) == 1:
        line = definitions[0]["line"]
        assert isinstance(line, int)
        yield from (f"  {text}" for text in read_line_texts(question, definitions[0], [line]).values())


def _caller_line(row: JsonRecord) -> str:
    times = f"  {row['calls']} times" if row["calls"] != 1 else ""
    return f"{record_path(row)}:{row['line']}: {row['scope'] or '(file)'}{times}"


def _call_line(row: JsonRecord) -> str:
    times = f"  {row['calls']} times" if row["calls"] != 1 else ""
    return f"{record_path(row)}:{row['line']}: {row['target']}{times}"


def _test_line(row: JsonRecord) -> str:
    if row["calls"]:
        return f"{record_path(row)}: {row['calls']} {'call' if row['calls'] == 1 else 'calls'}"
    steps = "imports the file" if row["distance"] == 1 else f"{row['distance']} import steps away"
    return f"{record_path(row)}: {steps}"
