"""Tables with the line numbers of their source."""

from __future__ import annotations


class LinedTable(dict[str, object]):
    """A table from a file. `line` is its own line, `lines` maps its keys to lines, counted from 1."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}


def line_of(table: object, key: str | None = None) -> int:
    """Return the line of a key, or of the table if `key` is None. 0 if unknown."""
    if not isinstance(table, LinedTable):
        return 0
    return table.line if key is None else table.lines.get(key, table.line)
