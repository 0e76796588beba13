"""Lines fitted to the terminal width. Without a terminal, lines are not shortened."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from codebatch.cli.output.terminal import printable

_WIDTH = 80
"""Assumed width of a terminal that does not report a width."""
_WIDTH_MIN = 20


def terminal_width(stream: TextIO | None = None) -> int | None:
    """Return the width of a terminal, by default of standard output, or None for another stream.

    If the terminal reports no width, COLUMNS is used.
    """
    stream = stream or sys.stdout
    if not stream.isatty():
        return None
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except OSError:
        columns = 0
    value = os.environ.get("COLUMNS", "")
    return max(columns or (int(value) if value.isdecimal() else _WIDTH), _WIDTH_MIN)


def fitted(line: str, width: int | None) -> str:
    """Return a printable line, cut to as many whole words as fit. The first word is never cut."""
    line = printable(line)
    if width is None or len(line) <= width:
        return line
    indent = len(line) - len(line.lstrip())
    cut = line.rfind(" ", indent + 1, width - 1)
    if cut <= indent:
        cut = line.find(" ", indent + 1)
    return line if cut < 0 else f"{line[:cut].rstrip()} …"


def fitted_path(path: str, width: int | None, before: int) -> str:
    """Return a path that follows `before` columns. If it does not fit, leading directories are replaced by `…`."""
    if width is None or before + len(path) <= width:
        return path
    shown = path
    while "/" in shown.removeprefix("…/") and before + len(shown) > width:
        shown = f"…/{shown.removeprefix('…/').partition('/')[2]}"
    return shown


def shortest_path(path: str) -> str:
    """Return the shortest form of a path that `fitted_path` can return: without its directories."""
    return fitted_path(path, 0, 0)


def without_same_directory(paths: list[str]) -> list[str]:
    """Return paths, as names only if the previous path is in the same directory."""
    named = [path.rpartition("/") for path in paths]
    return [
        name if place and directory == named[place - 1][0] else f"{directory}{slash}{name}"
        for place, (directory, slash, name) in enumerate(named)
    ]
