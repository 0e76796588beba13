"""Cell numbers in the records of a notebook."""

from __future__ import annotations

from msgspec.structs import replace

from codebatch.model.record import Diagnostic, Duplicate, Edge, Metric, Record, Symbol
from codebatch_workers.syntax.source import SourceFile


def with_cell_locations(file: SourceFile, records: list[Record]) -> list[Record]:
    """Return the records of a file. If it is a notebook, each record gets its cell and the line in this cell."""
    notebook = file.notebook
    if notebook is None:
        return records
    placed: list[Record] = []
    for record in records:
        place = None
        if isinstance(record, (Diagnostic, Duplicate, Edge, Symbol)) or (isinstance(record, Metric) and record.symbol):
            place = notebook.cell_location(record.line)
        placed.append(record if place is None else replace(record, cell=place[0], cell_line=place[1]))
    return placed
