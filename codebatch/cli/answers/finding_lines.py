"""Findings as lines: the location, the source line, and a caret below the place of the finding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from codebatch.cli.output.terminal import printable_line
from codebatch.cli.output.widths import fit_line
from codebatch.query.fields import JsonRecord, cell_text, record_path

if TYPE_CHECKING:
    from codebatch.operations.queries.source_text import SourceText

_TAB_COLUMNS = 4
_SOURCE_COLUMNS_MAX = 160
"""Width of source lines if standard output is not a terminal. Longer lines, such as minified code, are cut."""


def location_text(record: JsonRecord) -> str:
    """Return the location of a finding in the format of editors. In a notebook, the cell is added."""
    return f"{record_path(record)}:{record['line']}:{record['column']}{cell_text(record)}"


def source_lines(record: JsonRecord, source: SourceText | None, width: int | None) -> Iterator[str]:
    """Yield the source line of a finding. If the terminal is wide enough, yield a line with a caret below it.

    If the source is not available, yield nothing.
    """
    if source is None:
        return
    gutter = f"{record['line']:>8} | "
    expanded_line = source.text.expandtabs(_TAB_COLUMNS)
    margin = len(expanded_line) - len(expanded_line.lstrip())
    complete_line = printable_line(gutter + expanded_line.strip())
    line = fit_line(complete_line, width or _SOURCE_COLUMNS_MAX)
    room = len(line) - len(gutter) - (len("…") if line != complete_line else 0)
    start, end = (
        len(printable_line(source.text[:at].expandtabs(_TAB_COLUMNS))) - margin for at in (source.start, source.end)
    )
    yield line
    if start < room or line == complete_line:
        marked = "^" * max(min(end, room) - start, 1)
        yield f"{'|':>10} {' ' * max(start, 0)}{marked}"
