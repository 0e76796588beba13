"""Colors on standard output: severities and names only."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable
from typing import Literal

from codebatch.cli.show import record_parts
from codebatch.cli.terminal import printable
from codebatch.query.fields import JsonRecord

Color = Literal["auto", "always", "never"]

_NAME = 1
_COLORS = {"error": 31, "warning": 33, "info": 36, "hint": 32}
"""By ECMA-48: bold, red, yellow, cyan, green."""


def is_colored(color: Color) -> bool:
    """Whether what is written to standard output now is to have colors (no-color.org, force-color.org)."""
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (sys.stdout.isatty() and os.environ.get("TERM") != "dumb")


def write_colored(records: Iterable[JsonRecord]) -> None:
    """Write records as plain lines, their severities and names in color."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    for record in records:
        before, named, after = map(printable, record_parts(record))
        painted = f"\x1b[{_COLORS.get(named, _NAME)}m{named}\x1b[0m" if named else ""
        sys.stdout.write(f"{before}{painted}{after}\n")
