r"""Parsing of paths as displayed: `caf\xe9.py` for a name that is not UTF-8, `a\tb` for one with a tab."""

from __future__ import annotations

import re

# The escapes of characters that cannot be displayed: control characters, invisible characters, and bytes that are not
# UTF-8. `/` is never escaped.
_DISPLAY_ESCAPE = (
    r"\\(?:x(?!00)(?P<x>[01][0-9a-f]|7f|[89a-f][0-9a-f])|u(?!00|d[89a-f])(?P<u>[0-9a-f]{4})"
    r"|U(?P<U>000[1e][0-9a-f]{4})|(?P<short>[tnr]))"
)
_SHORT_ESCAPES = {"t": "\t", "n": "\n", "r": "\r"}


def paths_displayed_as(displayed: str) -> tuple[str, ...]:
    r"""Return the paths that codebatch displays as `displayed`, as strings of `os`.

    A path equal to `displayed` is omitted.

    The text `\x85` may represent a byte or a control character, so there may be two paths.
    """
    if "\\" not in displayed:
        return ()
    candidates = (_unescape(displayed, encoding) for encoding in ("ascii", "latin-1"))
    return tuple(path for path in dict.fromkeys(candidates) if path != displayed)


def _unescape(displayed: str, encoding: str) -> str:
    return re.sub(_DISPLAY_ESCAPE, lambda escape: _unescape_character(escape, encoding), displayed)


def _unescape_character(escape: re.Match[str], encoding: str) -> str:
    if escape["short"]:
        return _SHORT_ESCAPES[escape["short"]]
    if escape["x"]:
        return bytes.fromhex(escape["x"]).decode(encoding, "surrogateescape")
    return chr(int(escape["u"] or escape["U"], 16))
