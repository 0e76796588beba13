"""Tables parsed from files, with the line of each key, for error messages."""

from __future__ import annotations


class TableWithLines(dict[str, object]):
    """A table parsed from a file.

    `line` is the line where the table starts. `lines` maps its keys to lines, counted from 1.
    """

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}


def table_line(table: object, key: str | None = None) -> int:
    """Return the line of a key of a table, counted from 1.

    If `key` is None or has no known line, return the line of the table. Return 0 if that line is unknown too.
    """
    if not isinstance(table, TableWithLines):
        return 0
    return table.line if key is None else table.lines.get(key, table.line)
