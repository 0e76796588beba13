"""Lines that are cut to the width of the terminal. Without a terminal, lines are not cut."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from codebatch.cli.output.terminal import printable_line

_WIDTH_DEFAULT = 80
"""The width that is assumed for a terminal that does not report one."""
_WIDTH_MIN = 20


def terminal_width(stream: TextIO | None = None) -> int | None:
    """Return the width of a stream that is a terminal, by default of standard output. Return None for any other stream.

    If the terminal does not report a width, COLUMNS is used.
    """
    stream = stream or sys.stdout
    if not stream.isatty():
        return None
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except OSError:
        columns = 0
    value = os.environ.get("COLUMNS", "")
    return max(columns or (int(value) if value.isdecimal() else _WIDTH_DEFAULT), _WIDTH_MIN)


def fit_line(line: str, width: int | None) -> str:
    """Return as many whole words of a printable line as fit into `width`. The first word is never cut."""
    line = printable_line(line)
    if width is None or len(line) <= width:
        return line
    indent = len(line) - len(line.lstrip())
    cut = line.rfind(" ", indent + 1, width - 1)
    if cut <= indent:
        cut = line.find(" ", indent + 1)
    return line if cut < 0 else f"{line[:cut].rstrip()} …"


def fit_path(path: str, width: int | None, before: int) -> str:
    """Return a path to print on a line after `before` characters.

    If the path does not fit into `width`, its first directories are replaced by `…`.
    """
    if width is None or before + len(path) <= width:
        return path
    shortened = path
    while "/" in shortened.removeprefix("…/") and before + len(shortened) > width:
        shortened = f"…/{shortened.removeprefix('…/').partition('/')[2]}"
    return shortened


def shortest_path(path: str) -> str:
    """Return the shortest form in which `fit_path` can return a path: `…` and the file name."""
    return fit_path(path, 0, 0)


def hide_repeated_directories(paths: list[str]) -> list[str]:
    """Return paths for consecutive lines.

    If a path has the same directory as the path before it, only its name is returned.
    """
    named = [path.rpartition("/") for path in paths]
    return [
        name if place and directory == named[place - 1][0] else f"{directory}{slash}{name}"
        for place, (directory, slash, name) in enumerate(named)
    ]
