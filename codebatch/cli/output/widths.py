"""Lines as wide as the terminal, where there is one: what goes into a pipe or a file is whole."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from codebatch.cli.output.terminal import printable

_WIDTH = 80
"""Of a terminal that does not say it."""
_WIDTH_MIN = 20


def terminal_width(stream: TextIO | None = None) -> int | None:
    """The columns of the terminal that a stream is, by default standard output; None where it is none; COLUMNS where it
    does not say.
    """
    stream = stream or sys.stdout
    if not stream.isatty():
        return None
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except OSError:
        columns = 0
    told = os.environ.get("COLUMNS", "")
    return max(columns or (int(told) if told.isdecimal() else _WIDTH), _WIDTH_MIN)


def fitted(line: str, width: int | None) -> str:
    """A line, printable; of one that is too long as many whole words as there is room for, the first however long."""
    line = printable(line)
    if width is None or len(line) <= width:
        return line
    indent = len(line) - len(line.lstrip())
    cut = line.rfind(" ", indent + 1, width - 1)
    if cut <= indent:
        cut = line.find(" ", indent + 1)
    return line if cut < 0 else f"{line[:cut].rstrip()} …"


def fitted_path(path: str, width: int | None, before: int) -> str:
    """A path behind so many columns, of which directories are left out from the left where there is no room for all."""
    if width is None or before + len(path) <= width:
        return path
    shown = path
    while "/" in shown.removeprefix("…/") and before + len(shown) > width:
        shown = f"…/{shown.removeprefix('…/').partition('/')[2]}"
    return shown


def shortest_path(path: str) -> str:
    """A path without its directories, as `fitted_path` shows it where there is no room."""
    return fitted_path(path, 0, 0)


def without_same_directory(paths: list[str]) -> list[str]:
    """Paths, of which those in the directory of the one before have their names alone."""
    named = [path.rpartition("/") for path in paths]
    return [
        name if place and directory == named[place - 1][0] else f"{directory}{slash}{name}"
        for place, (directory, slash, name) in enumerate(named)
    ]
