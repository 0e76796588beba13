"""Whether Python is written for Python 2, as the line tells that Python 3 does not read."""

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
    """Whether a line that Python 3 does not read has a statement, an operator or a literal that Python 2 has."""
    return _PYTHON_2.search(line) is not None
