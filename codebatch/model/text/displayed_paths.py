r"""Paths as people are shown them, read back: `caf\xe9.py` for a name that is no UTF-8, `a\tb` for one with a tab."""

from __future__ import annotations

import re

# What is shown as an escape: control characters, what cannot be seen, and bytes that are no UTF-8. No `/` is.
_ESCAPE = (
    r"\\(?:x(?!00)(?P<x>[01][0-9a-f]|7f|[89a-f][0-9a-f])|u(?!00|d[89a-f])(?P<u>[0-9a-f]{4})"
    r"|U(?P<U>000[1e][0-9a-f]{4})|(?P<short>[tnr]))"
)
_SHORT = {"t": "\t", "n": "\n", "r": "\r"}


def paths_shown_as(shown: str) -> tuple[str, ...]:
    r"""The paths, as `os` has them, that people are shown as some text, besides that text itself.

    `\x85` may be a byte or a control character, so there may be two.
    """
    if "\\" not in shown:
        return ()
    found = (_read_back(shown, encoding) for encoding in ("ascii", "latin-1"))
    return tuple(path for path in dict.fromkeys(found) if path != shown)


def _read_back(shown: str, encoding: str) -> str:
    return re.sub(_ESCAPE, lambda escape: _character(escape, encoding), shown)


def _character(escape: re.Match[str], encoding: str) -> str:
    if escape["short"]:
        return _SHORT[escape["short"]]
    if escape["x"]:
        return bytes.fromhex(escape["x"]).decode(encoding, "surrogateescape")
    return chr(int(escape["u"] or escape["U"], 16))
