"""Text tables. On a terminal, a table is not wider than the terminal, and no word is broken or left out.

Only paths in the given columns are shortened, at their beginning. In a pipe or file, the width is not limited: each row
is one line, and a very long cell does not make other rows wider.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from codebatch.cli.output.terminal import printable_line
from codebatch.cli.output.widths import fit_path, shortest_path, terminal_width

_COLUMN_GAP = 2
_COLUMN_WIDTH_MIN = 8
_COLUMN_WIDTH_USUAL = 40
_INDENT = "  "


def table_lines(
    rows: Iterable[Iterable[object]],
    header: Iterable[str],
    *,
    paths: Collection[str] = (),
    columns: int | None = None,
) -> list[str]:
    """Return the lines of a table, with numbers right-aligned and text left-aligned.

    `columns` is the width, by default the width of standard output. `paths` names the columns that contain paths.
    """
    cells = [_cell_texts(row) for row in rows]
    named = list(header)
    of_paths = [at for at, name in enumerate(named) if name in paths]
    return align_rows([named, *cells], terminal_width() if columns is None else columns, of_paths)


def _cell_texts(row: Iterable[object]) -> list[str]:
    cells = [cell if type(cell) is str else _cell_text(cell) for cell in row]
    joined = "".join(cells)
    # Almost every row is printable. To check the joined row once is much faster than to check each cell.
    return cells if joined.isascii() and joined.isprintable() else list(map(printable_line, cells))


def _cell_text(cell: object) -> str:
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def align_rows(rows: Sequence[Sequence[str]], columns: int | None, paths: Collection[int] = ()) -> list[str]:
    """Return the lines of a table with aligned columns.

    The first of `rows` is the header. `columns` is the width, or None if there is no terminal. `paths` are the indexes
    of the columns that contain paths.
    """
    numbers = [len(rows) > 1 and all(_is_number(row[at]) for row in rows[1:]) for at in range(len(rows[0]))]
    if columns is None:
        widths = [min(max(map(len, column)), _COLUMN_WIDTH_USUAL) for column in zip(*rows, strict=True)]
        cells = [f"{{:{'>' if right else '<'}{width}}}" for width, right in zip(widths, numbers, strict=True)]
        line = (" " * _COLUMN_GAP).join(cells)
        return [line.format(*row).rstrip() for row in rows]
    widths = _column_widths(rows, columns, paths)
    is_stacked = sum(widths) + _COLUMN_GAP * (len(widths) - 1) > columns
    rooms = [columns - len(_INDENT)] * len(widths) if is_stacked else widths
    rows = [[fit_path(cell, rooms[at], 0) if at in paths else cell for at, cell in enumerate(row)] for row in rows]
    if is_stacked:
        return [line for row in rows for line in _stacked_lines(row, columns)]
    starts = [sum(widths[:at]) + _COLUMN_GAP * at for at in range(len(widths))]
    return [line for row in rows for line in _row_lines(row, widths, starts, numbers, columns)]


def wrap_text(text: str, columns: int, indent: str = "") -> list[str]:
    """Wrap text to lines of at most `columns` characters.

    All lines except the first begin with `indent`. A word that is longer than a line gets a line of its own.
    """
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        if line.strip() and len(line) + 1 + len(word) > columns:
            lines.append(line)
            line = indent + word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line]


def _column_widths(rows: Sequence[Sequence[str]], columns: int, paths: Collection[int]) -> list[int]:
    """Return the widths of the columns of a table. If the longest cells do not fit, the widest columns are narrowed.

    Columns of paths are narrowed first, to the last parts of the paths. No column becomes narrower than its longest
    word. But words longer than a quarter of the terminal are ignored; they may exceed their column.
    """
    words = [
        [len(shortest_path(row[at])) for row in rows]
        if at in paths
        else [len(word) for row in rows for word in row[at].split()]
        for at in range(len(rows[0]))
    ]
    narrowest = [max([_COLUMN_WIDTH_MIN, *(length for length in column if length < columns // 4)]) for column in words]
    lengths = [sorted({len(row[at]) for row in rows}) for at in range(len(rows[0]))]
    available = columns - _COLUMN_GAP * (len(lengths) - 1)
    while sum(column_lengths[-1] for column_lengths in lengths) > available:
        over = sum(column_lengths[-1] for column_lengths in lengths) - available
        wider = [at for at, column_lengths in enumerate(lengths) if column_lengths[-1] > narrowest[at]]
        if not wider:
            break
        at = max(wider, key=lambda at: (at in paths, lengths[at][-1]))
        widest = lengths[at]
        widest[-1] = max(narrowest[at], widest[-1] - over, *([widest[-2]] if len(widest) > 1 else []))
        if len(widest) > 1 and widest[-1] == widest[-2]:
            widest.pop()
    return [column_lengths[-1] for column_lengths in lengths]


def _row_lines(
    row: Sequence[str], widths: Sequence[int], starts: Sequence[int], numbers: Sequence[bool], columns: int
) -> list[str]:
    """Return the lines of one row.

    A long cell is wrapped inside its column. If a word is wider than its column, the next cells begin on a new line. If
    the word would also exceed the right edge of the terminal, it is moved to the left, so that it ends at the edge.
    """
    lines = [""]
    at = 0
    for cell, width, start, is_number in zip(row, widths, starts, numbers, strict=True):
        parts = [cell.rjust(width)] if is_number else wrap_text(cell, width)
        begin = max(0, min(start, columns - max(map(len, parts))))
        longer = [number for number, line in enumerate(lines) if line and len(line) > begin - _COLUMN_GAP]
        at = max(at, longer[-1] + 1) if longer else at
        for below, part in enumerate(parts, at):
            if below == len(lines):
                lines.append("")
            lines[below] = lines[below].ljust(begin) + part
    return [line.rstrip() for line in lines]


def _stacked_lines(row: Sequence[str], columns: int) -> list[str]:
    """Return the lines of a row if the table is too wide for the terminal: each cell is below the previous one."""
    first, *further = row
    below = (part for cell in further for part in wrap_text(cell, columns - len(_INDENT)))
    return [*wrap_text(first, columns, _INDENT), *(_INDENT + part for part in below)]


def _is_number(text: str) -> bool:
    return text.replace(",", "").isdigit()
