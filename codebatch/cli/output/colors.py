"""Colours and links in what people are shown on standard output: severities, names and paths.

A line comes as plain text. What is a severity in it is told by where it stands (`path:line:column: error …`, `2 error`,
a cell of a table); what is a path by that something lies there in the tree that was asked about. Links (OSC 8) are for
terminals alone: `file://` with the host, so that a terminal on another machine does not open a file of its own.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from typing import Literal, TextIO

Color = Literal["auto", "always", "never"]

_NAME = 1
_PATH = 35
_SEVERITIES = {"error": 31, "warning": 33, "info": 36, "hint": 32}
"""By ECMA-48: bold, magenta, red, yellow, cyan, green."""
_WITHOUT_LINKS = ("dumb", "linux")
"""Terminals that would print them."""

_PLACE = re.compile(r"(?P<margin>\s*)(?P<path>\S.*?)(?P<line>(?::\d+)*)(?=: )")
_PART = re.compile(
    rf"(?:^|^: |(?<=  )|(?<=\d ))(?P<severity>{'|'.join(_SEVERITIES)})(?=[ ,]|$)"
    r"|(?<![^\s(])(?P<path>[^\s:(),]*[./][^\s:(),]+)(?P<line>(?::\d+)*)"
)


def is_colored(color: Color, stream: TextIO | None = None) -> bool:
    """Return whether output to a stream, by default stdout, has colours (no-color.org, force-color.org)."""
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    is_terminal = (stream or sys.stdout).isatty() and os.environ.get("TERM") != "dumb"
    return is_terminal or bool(os.environ.get("FORCE_COLOR"))


def is_linked() -> bool:
    """Whether standard output, if it has colours, is to have links: it is a terminal that knows them."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in _WITHOUT_LINKS


def painted_name(name: str) -> str:
    """A name, or a severity, in its colour."""
    return _painted(_SEVERITIES.get(name, _NAME), name) if name else ""


class Painter:
    """Gives printable lines their colours, and their paths links. Without the escapes a line is as it was."""

    def __init__(self, tree: bytes | None, *, has_links: bool) -> None:
        """`tree`: where it lies that was asked about, absolute; None where that is not known."""
        self._tree = tree
        self._url = b"file://" + os.fsencode(os.uname().nodename) if has_links else None
        self._found = functools.lru_cache(1024)(self._find)

    def __call__(self, line: str) -> str:
        """A line, painted."""
        place = _PLACE.match(line)
        if place is None or not self._found(place["path"]):
            return _PART.sub(self._part, line)
        told = self._path(place["path"], place["line"])
        return f"{place['margin']}{told}{_PART.sub(self._part, line[place.end() :])}"

    def _part(self, part: re.Match[str]) -> str:
        if part["path"] is not None:
            return self._path(part["path"], part["line"]) if self._found(part["path"]) else part[0]
        return part[0].removesuffix(part["severity"]) + painted_name(part["severity"])

    def _path(self, path: str, line: str) -> str:
        told = _painted(_PATH, path)
        if self._url is None:
            return told + line
        from urllib.parse import quote  # only a terminal pays for it

        return f"\x1b]8;;{quote(self._url + self._found(path), safe=':/')}\x1b\\{told}{line}\x1b]8;;\x1b\\"

    def _find(self, path: str) -> bytes:
        """What a path of the tree is called on this machine, empty where nothing lies there."""
        if self._tree is None or os.path.isabs(path) or ".." in path.split("/"):
            return b""
        try:
            found = os.path.join(self._tree, os.fsencode(path))
        except UnicodeEncodeError:
            return b""
        return found if os.path.lexists(found) else b""


def _painted(color: int, text: str) -> str:
    return f"\x1b[{color}m{text}\x1b[0m"
