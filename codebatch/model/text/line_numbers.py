"""Tables from files that know the lines of their keys, for messages about errors."""

from __future__ import annotations


class TableWithLines(dict[str, object]):
    """A table from a file. `line` is the line where it starts. `lines` maps its keys to lines, counted from 1."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}


def table_line(table: object, key: str | None = None) -> int:
    """Return the line of a key. If `key` is None or unknown, return the line of the table, or 0 if that is unknown."""
    if not isinstance(table, TableWithLines):
        return 0
    return table.line if key is None else table.lines.get(key, table.line)
