"""Jupyter notebooks in Python: the code of all cells as one Python module.

The module has as many lines as the notebook's file. Each line of code is at the same line number as in the file, and
all other lines are empty. So line numbers are valid in both. In some notebooks, one line of the file contains several
lines of code, for example if the file has no line ends. Then the module consists only of the lines of code, in
sequence. IPython commands (`%matplotlib`, `!pip`) become comments.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property

import msgspec
from tree_sitter import Node

from codebatch_workers.syntax.language.languages import load_parser

NOTEBOOK_LANGUAGE = "python"
"""The language of all notebooks that are read."""
_PYTHON_NAMES = frozenset({"ipython", "python3", NOTEBOOK_LANGUAGE})
_FORMAT_VERSION_MIN = 4
# Cell magics, such as `%%time`, after which the rest of the cell is still Python.
_PYTHON_CELL_COMMANDS = frozenset({b"capture", b"prun", b"pypy", b"python", b"python3", b"time", b"timeit"})
_CELL_COMMAND = re.compile(rb"\s*%%(\w+)")
_IPYTHON_COMMAND = re.compile(
    rb"(?P<indent>[ \t]*)(?:[%!](?=[\w%!({$~./])|\?{1,2}(?=\w)|(?=[\w.*]+\?{1,2}\s*\Z))"
    rb"|(?P<value>[ \t]*[\w, \[\].]+=\s*)[%!](?=[\w$~./])"
)


class NotebookCell(msgspec.Struct, frozen=True):
    """A code cell: its number among all cells, the number of its first line in the module, and its lines.

    Both numbers count from 1.
    """

    number: int
    first_line: int
    lines: tuple[bytes, ...]


class Notebook(msgspec.Struct, frozen=True, dict=True):
    """The code cells of a notebook, the number of lines of the module, and the number of cells of any kind."""

    cells: tuple[NotebookCell, ...]
    line_count: int
    cell_count: int

    @cached_property
    def module_source(self) -> bytes:
        """The source of the module."""
        lines = [b""] * self.line_count
        for cell in self.cells:
            lines[cell.first_line - 1 : cell.first_line - 1 + len(cell.lines)] = _blank_commands(cell.lines)
        return b"".join(line + b"\n" for line in lines)

    @cached_property
    def _first_lines(self) -> list[int]:
        return [cell.first_line for cell in self.cells]

    @property
    def code_line_count(self) -> int:
        """The number of lines of all code cells together."""
        return sum(len(cell.lines) for cell in self.cells)

    def cell_location(self, line: int) -> tuple[int, int] | None:
        """Return the cell number and the line in this cell for a line of the module. Outside cells, return None."""
        index = bisect_right(self._first_lines, line) - 1
        if index < 0 or line - self.cells[index].first_line >= len(self.cells[index].lines):
            return None
        return self.cells[index].number, line - self.cells[index].first_line + 1

    def module_line(self, cell_number: int, line: int) -> int:
        """Return the line of the module for a line of a cell. If the cell lacks this line, return the nearest one."""
        cell = next((cell for cell in self.cells if cell.number == cell_number), None)
        return 1 if cell is None else cell.first_line + min(max(line, 1), max(len(cell.lines), 1)) - 1

    def code_only_notebook(self) -> bytes:
        """Return a notebook with only the code cells of this one, for programs that read the notebook format."""
        code = {cell.number: b"\n".join(cell.lines).decode("utf-8", "replace") for cell in self.cells}
        cells: list[dict[str, object]] = [
            {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": code[number]}
            if number in code
            else {"cell_type": "markdown", "metadata": {}, "source": ""}
            for number in range(1, self.cell_count + 1)
        ]
        metadata = {"language_info": {"name": NOTEBOOK_LANGUAGE}}
        return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 4}).encode()


def read_notebook(utf8: bytes) -> Notebook | None:
    """Return the notebook in a file. Return None if it is not a valid notebook, or not in Python."""
    root = load_parser("json").parse(utf8).root_node
    top = root.named_children[0] if root.named_child_count == 1 and not root.has_error else None
    if top is None or top.type != "object":
        return None
    members = dict(_iter_members(top))
    if not _is_python_notebook(members):
        return None
    cells = members["cells"].named_children
    code = [
        (number, *_cell_source(cell))
        for number, cell in enumerate(cells, 1)
        if _string_text(_find_member(cell, "cell_type")) == "code"
    ]
    line_count = utf8.count(b"\n") + (not utf8.endswith(b"\n"))
    if _have_separate_lines([rows for _, _, rows in code]):
        placed = tuple(NotebookCell(number, rows[0] + 1, lines) for number, lines, rows in code if lines)
        return Notebook(placed, line_count, len(cells))
    cells_in_sequence: list[NotebookCell] = []
    first = 1
    for number, lines, _ in code:
        if lines:
            cells_in_sequence.append(NotebookCell(number, first, lines))
            first += len(lines)
    return Notebook(tuple(cells_in_sequence), first - 1, len(cells))


def _is_python_notebook(top: dict[str, Node]) -> bool:
    version, cells, metadata = top.get("nbformat"), top.get("cells"), top.get("metadata")
    if version is None or cells is None or cells.type != "array" or not (version.text or b"").isdigit():
        return False
    if int(version.text or b"0") < _FORMAT_VERSION_MIN:
        return False
    for group, name in (("language_info", "name"), ("kernelspec", "language"), ("kernelspec", "name")):
        language = _string_text(_find_member(_find_member(metadata, group), name))
        if language:
            return language.lower() in _PYTHON_NAMES
    # If a notebook declares no language, Jupyter assumes Python.
    return True


def _iter_members(node: Node | None) -> Iterator[tuple[str, Node]]:
    for pair in node.named_children if node is not None and node.type == "object" else ():
        key, value = pair.child_by_field_name("key"), pair.child_by_field_name("value")
        if key is not None and value is not None:
            yield _string_text(key), value


def _find_member(node: Node | None, name: str) -> Node | None:
    return next((value for key, value in _iter_members(node) if key == name), None)


def _string_text(node: Node | None) -> str:
    """Return the text of a JSON string node. For any other node, return an empty text."""
    if node is None or node.type != "string" or node.text is None:
        return ""
    try:
        text = json.loads(node.text)
    except ValueError:
        return ""
    return text if isinstance(text, str) else ""


def _cell_source(cell: Node) -> tuple[tuple[bytes, ...], list[int]]:
    """Return the lines of a cell. Also return for each line its row in the file, from 0."""
    source = _find_member(cell, "source")
    if source is None:
        return (), []
    strings = source.named_children if source.type == "array" else [source]
    lines: list[bytes] = []
    rows: list[int] = []
    is_open = False
    for node in strings:
        for piece in _source_pieces(node):
            if is_open:
                lines[-1] += piece.rstrip(b"\n")
            else:
                lines.append(piece.rstrip(b"\n"))
                rows.append(node.start_point[0])
            is_open = not piece.endswith(b"\n")
    return tuple(lines), rows


def _source_pieces(node: Node) -> list[bytes]:
    """Return the lines in a JSON string node, each with its line end."""
    return re.findall(rb"[^\n]*\n|[^\n]+", _string_text(node).encode("utf-8", "replace"))


def _have_separate_lines(cells: Sequence[Sequence[int]]) -> bool:
    """Return whether each line of code has its own row in the file, and the rows of each cell are consecutive."""
    last = -1
    for rows in cells:
        if rows and (rows[0] <= last or list(rows) != list(range(rows[0], rows[0] + len(rows)))):
            return False
        last = rows[-1] if rows else last
    return True


def _blank_commands(lines: Sequence[bytes]) -> list[bytes]:
    """Return the lines of a cell, in which comments of the same length replace IPython commands."""
    command = _CELL_COMMAND.match(lines[0])
    if command is not None and command[1] not in _PYTHON_CELL_COMMANDS:
        return [b"#" + line[1:] for line in lines]
    module: list[bytes] = []
    is_continued = False
    for line in lines:
        command_match = None if is_continued else _IPYTHON_COMMAND.match(line)
        if is_continued:
            module.append(b"#" + line[1:])
        else:
            module.append(line if command_match is None else _blank_command(line, command_match))
        is_continued = (is_continued or command_match is not None) and line.endswith(b"\\")
    return module


def _blank_command(line: bytes, match: re.Match[bytes]) -> bytes:
    if match["value"] is not None:
        # The value 0 replaces the command, so that the assignment remains valid.
        start = len(match["value"])
        return line[:start] + b"0#" + line[start + 2 :]
    start = len(match["indent"])
    if start:
        # The statement `0` replaces the command, because its block may contain no other statement.
        return line[:start] + b"0#" + line[start + 2 :]
    return b"#" + line[1:]
