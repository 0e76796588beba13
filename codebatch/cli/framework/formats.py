"""Output of records in a format: table, JSON, JSON lines, CSV, Markdown or plain lines."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Sequence

import msgspec

from codebatch.cli.framework.context import OutputForm
from codebatch.cli.framework.format_option import escapes_formulas
from codebatch.cli.output.colors import Painter, painted_name
from codebatch.cli.output.streams import write_with_colors
from codebatch.cli.output.tables import table_lines
from codebatch.cli.output.terminal import printable_line
from codebatch.cli.output.widths import terminal_width
from codebatch.model.record import RECORD_KINDS
from codebatch.model.task import JsonValue
from codebatch.query.fields import DERIVED_FIELDS, NO_LANGUAGES, JsonRecord, field_value, record_fields
from codebatch.query.filters.shaping import cell_text

FORMS_FOR_PROGRAMS = ("json", "jsonl", "csv")
"""Formats for programs. Their values are complete and unchanged."""
STREAMED_FORMS = ("jsonl", "csv", "md")
"""Formats whose first rows are written before all records are read."""

_UNLIMITED_WIDTH = 1 << 30
"""The width of a table in a pipe if the user explicitly requested a table. So no cell is wrapped."""

_FORMULA_STARTS = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"
"""Characters with which a formula begins in a spreadsheet (OWASP, "CSV Injection")."""
_PATH_COLUMNS = ("path", "other_path", "dir")
"""Columns with paths. In a narrow terminal, only the last parts of a path are shown."""

_COLUMNS_BY_KIND = {
    "file": ("path", "lang", "lines", "class", "parse"),
    "diagnostic": ("path", "line", "column", "severity", "code", "message"),
    "metric": ("path", "line", "symbol", "metric", "value"),
    "symbol": ("path", "line", "symbol_type", "qualified"),
    "edge": ("path", "line", "edge_type", "source", "target"),
    "failure": ("path", "task", "reason"),
    "ast": ("path", "format", "object"),
    "change": ("path", "added", "removed"),
    "fingerprints": ("path",),
    "names": ("path",),
    "duplicate": ("path", "line", "lines", "copies", "other_path", "other_line"),
    "omission": ("path", "task", "part", "count", "sample"),
}


def default_columns(form: OutputForm, kinds: Iterable[str]) -> tuple[str, ...]:
    """Return the default columns for records of some kinds.

    For a format for programs, these are all columns, otherwise the most useful ones.
    """
    ordered = [kind for kind in RECORD_KINDS if kind in frozenset(kinds)]
    if form in FORMS_FOR_PROGRAMS:
        written = (field for field in record_fields(ordered) if not field.endswith("_b64"))
        return tuple(
            field for field in written if field not in DERIVED_FIELDS or ("file" in ordered and field == "lang")
        )
    several = ("kind",) if len(ordered) > 1 else ()
    return tuple(dict.fromkeys([*several, *(field for kind in ordered for field in _COLUMNS_BY_KIND[kind])]))


def write_rows(
    form: OutputForm,
    rows: Iterable[JsonRecord],
    columns: Sequence[str],
    value: Callable[[JsonRecord, str], JsonValue] = lambda row, field: field_value(row, field, NO_LANGUAGES),
) -> None:
    """Write rows to standard output in any format except JSON. `value` returns the value of a row in a column.

    Control characters are escaped. They are not escaped in JSON lines, and in CSV that is not written to a terminal.
    """
    if form == "jsonl":
        for row in rows:
            sys.stdout.buffer.write(msgspec.json.encode(row) + b"\n")
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    is_raw = form == "csv" and not sys.stdout.isatty()
    format_cell = escaped_formula if escapes_formulas() else cell_text
    texts = ([format_cell(value(row, column)) for column in columns] for row in rows)
    cells = texts if is_raw else (list(map(printable_line, row)) for row in texts)
    match form:
        case "csv":
            import csv

            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(map(format_cell, columns))
            writer.writerows(cells)
        case "md":
            sys.stdout.write(f"{_markdown_row(columns)}\n{_markdown_row(['---'] * len(columns))}\n")
            sys.stdout.writelines(f"{_markdown_row(row)}\n" for row in cells)
        case "table":
            width = terminal_width() or _UNLIMITED_WIDTH
            sys.stdout.writelines(
                f"{line}\n" for line in table_lines(cells, columns, paths=_PATH_COLUMNS, columns=width)
            )
        case _:
            sys.stdout.writelines("\t".join(row) + "\n" for row in cells)


def write_painted_records(records: Iterable[JsonRecord], paint: Painter) -> None:
    """Write records to standard output as plain lines with coloured severities, names and paths."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    from codebatch.cli.output.records import record_parts  # Other formats do not need this import.

    for record in records:
        before, named, after = map(printable_line, record_parts(record))
        write_with_colors(sys.stdout, f"{paint(before)}{painted_name(named)}{paint(after) if not named else after}\n")


def escaped_formula(value: JsonValue) -> str:
    """Return a value as text that no spreadsheet takes for a formula.

    A text that begins like a formula gets a prefix. Numbers are unchanged, even negative ones.
    """
    text = cell_text(value)
    is_number = isinstance(value, int | float)
    return f"'{text}" if text[:1] in _FORMULA_STARTS and text and not is_number else text


def _markdown_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(text.replace("\\", "\\\\").replace("|", "\\|") for text in cells) + " |"
