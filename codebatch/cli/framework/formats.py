"""Output of records in a format: table, JSON, JSON lines, CSV, Markdown or plain lines."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Sequence

import msgspec

from codebatch.cli.framework.context import Form
from codebatch.cli.framework.format_option import escapes_formulas
from codebatch.cli.output.colors import Painter, painted_name
from codebatch.cli.output.streams import write_with_colors
from codebatch.cli.output.tables import table
from codebatch.cli.output.terminal import printable
from codebatch.cli.output.widths import terminal_width
from codebatch.model.record import KINDS
from codebatch.model.task import Json
from codebatch.query.fields import DERIVED, NO_LANGUAGES, JsonRecord, field_value, record_fields
from codebatch.query.filters.shaping import cell

FOR_PROGRAMS = ("json", "jsonl", "csv")
"""Formats for programs. Their values are complete and unchanged."""
STREAMED = ("jsonl", "csv", "md")
"""Formats whose first rows are written before all records are read."""

_ANY_WIDTH = 1 << 30
"""The width of a table in a pipe if the user explicitly requested a table. So no cell is wrapped."""

_FORMULA_STARTS = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"
"""Characters with which a formula begins in a spreadsheet (OWASP, "CSV Injection")."""
_PATH_COLUMNS = ("path", "other_path", "dir")
"""Columns with paths. In a narrow terminal, only the last parts of a path are shown."""

_COLUMNS = {
    "file": ("path", "lang", "lines", "class", "parse"),
    "diagnostic": ("path", "line", "column", "severity", "code", "message"),
    "metric": ("path", "line", "symbol", "metric", "value"),
    "symbol": ("path", "line", "symbol_type", "qualified"),
    "edge": ("path", "line", "edge_type", "source", "target"),
    "failure": ("path", "task", "reason"),
    "ast": ("path", "format", "object"),
    "fingerprints": ("path",),
    "duplicate": ("path", "line", "lines", "copies", "other_path", "other_line"),
}


def default_columns(form: Form, kinds: Iterable[str]) -> tuple[str, ...]:
    """Return the default columns for records of some kinds.

    For a format for programs, these are all columns, otherwise the most useful ones.
    """
    ordered = [kind for kind in KINDS if kind in frozenset(kinds)]
    if form in FOR_PROGRAMS:
        written = (field for field in record_fields(ordered) if not field.endswith("_b64"))
        return tuple(field for field in written if field not in DERIVED or ("file" in ordered and field == "lang"))
    several = ("kind",) if len(ordered) > 1 else ()
    return tuple(dict.fromkeys([*several, *(field for kind in ordered for field in _COLUMNS[kind])]))


def _value(row: JsonRecord, field: str) -> Json:
    return field_value(row, field, NO_LANGUAGES)


def write_rows(
    form: Form,
    rows: Iterable[JsonRecord],
    columns: Sequence[str],
    value: Callable[[JsonRecord, str], Json] = _value,
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
    format_cell = escaped_formula if escapes_formulas() else cell
    texts = ([format_cell(value(row, column)) for column in columns] for row in rows)
    cells = texts if is_raw else (list(map(printable, row)) for row in texts)
    match form:
        case "csv":
            import csv

            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(map(format_cell, columns))
            writer.writerows(cells)
        case "md":
            sys.stdout.write(f"{_md(columns)}\n{_md(['---'] * len(columns))}\n")
            sys.stdout.writelines(f"{_md(row)}\n" for row in cells)
        case "table":
            width = terminal_width() or _ANY_WIDTH
            sys.stdout.writelines(f"{line}\n" for line in table(cells, columns, paths=_PATH_COLUMNS, columns=width))
        case _:
            sys.stdout.writelines("\t".join(row) + "\n" for row in cells)


def write_painted(records: Iterable[JsonRecord], paint: Painter) -> None:
    """Write records to standard output as plain lines with coloured severities, names and paths."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    from codebatch.cli.output.records import record_parts  # Other formats do not need this import.

    for record in records:
        before, named, after = map(printable, record_parts(record))
        write_with_colors(sys.stdout, f"{paint(before)}{painted_name(named)}{paint(after) if not named else after}\n")


def escaped_formula(value: Json) -> str:
    """Return a value as text that no spreadsheet takes for a formula.

    A text that begins like a formula gets a prefix. Numbers are unchanged, even negative ones.
    """
    text = cell(value)
    is_number = isinstance(value, int | float)
    return f"'{text}" if text[:1] in _FORMULA_STARTS and text and not is_number else text


def _md(cells: Iterable[str]) -> str:
    return "| " + " | ".join(text.replace("\\", "\\\\").replace("|", "\\|") for text in cells) + " |"
