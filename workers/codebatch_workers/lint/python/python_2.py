"""Recognition of Python 2 by the first line that Python 3 cannot parse."""

from __future__ import annotations

import re

_PYTHON_2 = re.compile(
    rb"""(?x) ^[ \t]*(?:
        print[ \t]+(?![ \t(=.,:\[])
        | exec[ \t]+(?![ \t(=.,:\[])
        | raise[ \t]+[\w.]+[ \t]*,
        | except[ \t]+[^:#\n]+,[ \t]*\w+[ \t]*:
    )
    | <> | `[^`\n]+` | \b(?:0[0-7]+|\d+)[lL]\b | (?<![\w.'\"])0[0-7]+\b(?![.'\"]) | \b[uU][rR][\"']"""
)


def is_python_2(line: bytes) -> bool:
    """Return whether a line that Python 3 rejected has a statement, operator or literal of Python 2."""
    return _PYTHON_2.search(line) is not None
