"""Tables that know on which lines of a file they stand."""

from __future__ import annotations


class LinedTable(dict[str, object]):
    """A table as a file has it: `line` is its own, `lines` are those of its keys, all from 1."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}


def line_of(table: object, key: str | None = None) -> int:
    """The line of a key, or of the table itself; 0 where nobody knows it."""
    if not isinstance(table, LinedTable):
        return 0
    return table.line if key is None else table.lines.get(key, table.line)
