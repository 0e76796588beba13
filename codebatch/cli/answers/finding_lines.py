"""Findings as lines for people: location, source line and caret."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from codebatch.cli.output.terminal import printable
from codebatch.cli.output.widths import fitted
from codebatch.query.fields import JsonRecord, cell_of, record_path

if TYPE_CHECKING:
    from codebatch.operations.queries.source_text import SourceText

_TAB_COLUMNS = 4
_WIDTH_OF_SOURCE = 160
"""Width of a source line if standard output is no terminal. Minified lines are cut."""


def place_of(record: JsonRecord) -> str:
    """Return where a finding begins, as editors take it, and in a notebook the cell."""
    return f"{record_path(record)}:{record['line']}:{record['column']}{cell_of(record)}"


def source_lines(record: JsonRecord, found: SourceText | None, width: int | None) -> Iterator[str]:
    """The line of a finding, and under it a caret, as far as there is room; nothing where it cannot be told."""
    if found is None:
        return
    gutter = f"{record['line']:>8} | "
    shown = found.text.expandtabs(_TAB_COLUMNS)
    margin = len(shown) - len(shown.lstrip())
    whole = printable(gutter + shown.strip())
    line = fitted(whole, width or _WIDTH_OF_SOURCE)
    room = len(line) - len(gutter) - (len("…") if line != whole else 0)
    start, end = (len(printable(found.text[:at].expandtabs(_TAB_COLUMNS))) - margin for at in (found.start, found.end))
    yield line
    if start < room or line == whole:
        marked = "^" * max(min(end, room) - start, 1)
        yield f"{'|':>10} {' ' * max(start, 0)}{marked}"
