"""Export of findings in notebooks, for programs that know only lines of files.

Such a program shows a notebook as its JSON text. So a finding in a cell gets the number of the JSON line that contains
the same code. Its message names the cell.

A notebook without line breaks has no JSON line with only this code. The finding then gets line 1, as in ruff.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from msgspec import UNSET
from msgspec.structs import replace

from codebatch.interchange.findings import ExportedFinding
from codebatch.model.record import Diagnostic
from codebatch.operations.export.sources import BatchSources
from codebatch.operations.queries.source_text import notebook_cell_lines

_SOURCE_KEY = re.compile(rb'\s*"source"\s*:')
_AROUND_SOURCE_LINE = b" \t\r[],"

_NotebookLines = tuple[list[bytes], list[list[str]]]


def relocate_notebook_findings(outgoing: Sequence[ExportedFinding], sources: BatchSources) -> list[ExportedFinding]:
    """Replace the cell lines of findings in notebooks by lines of the notebook files. Raises StoreCorrupt.

    Return all findings, including those in other files.
    """
    notebooks: dict[bytes, _NotebookLines] = {}
    for path in {finding.path for finding in outgoing if finding.diagnostic.cell is not UNSET}:
        content = sources.content(path) or b""
        notebooks[path] = content.split(b"\n"), notebook_cell_lines(content)
    return [
        finding
        if finding.diagnostic.cell is UNSET
        else finding._replace(diagnostic=_relocate_to_file(finding.diagnostic, *notebooks[finding.path]))
        for finding in outgoing
    ]


def _relocate_to_file(diagnostic: Diagnostic, lines: list[bytes], cells: list[list[str]]) -> Diagnostic:
    message = f"{diagnostic.message} (cell {diagnostic.cell}, line {diagnostic.cell_line})"
    if not _has_code_at_line(diagnostic, lines, cells):
        return replace(diagnostic, message=message, line=1, column=1, end_line=1, end_column=1)
    last = max(diagnostic.end_line - (diagnostic.end_column <= 1), diagnostic.line)
    return replace(diagnostic, message=message, column=1, end_line=last + 1, end_column=1)


def _has_code_at_line(diagnostic: Diagnostic, lines: list[bytes], cells: list[list[str]]) -> bool:
    """Return whether the JSON line of a finding contains exactly the line of code to which the finding refers."""
    cell, line = diagnostic.cell, diagnostic.cell_line
    if cell is UNSET or line is UNSET or not 0 < cell <= len(cells) or not 0 < line <= len(cells[cell - 1]):
        return False
    code = cells[cell - 1][line - 1]
    text = lines[diagnostic.line - 1] if 0 < diagnostic.line <= len(lines) else b""
    try:
        return json.loads(_SOURCE_KEY.sub(b"", text).strip(_AROUND_SOURCE_LINE)) in (code, f"{code}\n")
    except ValueError:
        return False
