"""Colours and links in output for people. Severities, names and paths are coloured.

The painter finds them by parsing plain lines. A severity is recognised by its position (`path:line:column: error …`, `2
error`, a table cell). A path is recognised if it exists in the queried tree.

Links (OSC 8) are written only to terminals. They are `file://` URLs with the host name, so that a terminal on another
machine does not open one of its own files.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from typing import Literal, TextIO

Color = Literal["auto", "always", "never"]

_NAME_STYLE = 1
_PATH_COLOR = 35
_SEVERITY_COLORS = {"error": 31, "warning": 33, "info": 36, "hint": 32}
"""ECMA-48 codes: bold, magenta, red, yellow, cyan, green."""
_TERMINALS_WITHOUT_LINKS = ("dumb", "linux")
"""Terminals that print links as plain text."""

_LOCATION = re.compile(r"(?P<margin>\s*)(?P<path>\S.*?)(?P<line>(?::\d+)*)(?=: )")
_PAINTED_PART = re.compile(
    rf"(?:^|^: |(?<=  )|(?<=\d ))(?P<severity>{'|'.join(_SEVERITY_COLORS)})(?=[ ,]|$)"
    r"|(?<![^\s(])(?P<path>[^\s:(),]*[./][^\s:(),]+)(?P<line>(?::\d+)*)"
)


def is_colored(color: Color, stream: TextIO | None = None) -> bool:
    """Return whether output to a stream is coloured (no-color.org, force-color.org). The default stream is stdout."""
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    is_terminal = (stream or sys.stdout).isatty() and os.environ.get("TERM") != "dumb"
    return is_terminal or bool(os.environ.get("FORCE_COLOR"))


def supports_links() -> bool:
    """Return whether standard output is a terminal that supports links."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in _TERMINALS_WITHOUT_LINKS


def painted_name(name: str) -> str:
    """Return a name or a severity in its colour."""
    return _paint(_SEVERITY_COLORS.get(name, _NAME_STYLE), name) if name else ""


class Painter:
    """A painter of printable lines. It adds colours, and links for paths. The text itself is unchanged."""

    def __init__(self, tree: bytes | None, *, has_links: bool) -> None:
        """Create the painter.

        `tree` is the absolute path of the tree whose files are recognised, or None if unknown.
        """
        self._tree = tree
        self._url = b"file://" + os.fsencode(os.uname().nodename) if has_links else None
        self._resolved = functools.lru_cache(1024)(self._resolve_path)

    def __call__(self, line: str) -> str:
        """Return a line with colours and links."""
        place = _LOCATION.match(line)
        if place is None or not self._resolved(place["path"]):
            return _PAINTED_PART.sub(self._paint_part, line)
        path = self._paint_path(place["path"], place["line"])
        return f"{place['margin']}{path}{_PAINTED_PART.sub(self._paint_part, line[place.end() :])}"

    def _paint_part(self, part: re.Match[str]) -> str:
        if part["path"] is not None:
            return self._paint_path(part["path"], part["line"]) if self._resolved(part["path"]) else part[0]
        return part[0].removesuffix(part["severity"]) + painted_name(part["severity"])

    def _paint_path(self, path: str, line: str) -> str:
        painted = _paint(_PATH_COLOR, path)
        if self._url is None:
            return painted + line
        from urllib.parse import quote  # Only terminal output needs this import.

        return f"\x1b]8;;{quote(self._url + self._resolved(path), safe=':/')}\x1b\\{painted}{line}\x1b]8;;\x1b\\"

    def _resolve_path(self, path: str) -> bytes:
        """Return the absolute path of a path in the tree. Return an empty string if no such file exists."""
        if self._tree is None or os.path.isabs(path) or ".." in path.split("/"):
            return b""
        try:
            absolute = os.path.join(self._tree, os.fsencode(path))
        except UnicodeEncodeError:
            return b""
        return absolute if os.path.lexists(absolute) else b""


def _paint(color: int, text: str) -> str:
    return f"\x1b[{color}m{text}\x1b[0m"
