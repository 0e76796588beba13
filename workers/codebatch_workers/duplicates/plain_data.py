"""Recognition of blocks of data. They are not reported, because developers do not merge such duplicates."""

from __future__ import annotations

import re
from collections.abc import Sequence

# A block is plain data if at least this share of its lines are values.
_DATA_LINES_SHARE_MIN = 0.9
# One token of data, such as `80,`. Code lines contain no white space. A key can precede a value, as in `width:80,`.
_DATA_TOKEN = re.compile(
    rb"(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[-+]?(?:0[xX][0-9a-fA-F_]+|\d[\d_.]*(?:[eE][-+]?\d+)?)[a-zA-Z]{0,3}"
    rb"|(?:true|false|null|NULL|nil|None|True|False|undefined)(?!\w)|[A-Za-z_$][\w$]*:(?!:)|=>|[\[\]{}(),;:])"
)
# A key before a value in a Lua table or a keyword argument. The line must end like a list element.
_KEY_BEFORE_VALUE = re.compile(rb"(?<![\w.\])])[A-Za-z_]\w*=(?=[\"'{\[\d.-]|(?:true|false|nil|None|True|False)\W)")
_LIST_ELEMENT_ENDS = (b",", b"{", b"[", b"(")


def is_plain_data(lines: Sequence[bytes]) -> bool:
    """Return whether nearly all code lines are values without names."""
    plain_min = _DATA_LINES_SHARE_MIN * len(lines)
    plain = len(lines)
    for line in lines:
        plain -= not _is_value_line(line)
        if plain < plain_min:
            return False
    return True


def _is_value_line(line: bytes) -> bool:
    if b"=" in line and line.endswith(_LIST_ELEMENT_ENDS):
        line = _KEY_BEFORE_VALUE.sub(b"", line)
    return _DATA_TOKEN.match(line) is not None and not _DATA_TOKEN.sub(b"", line)
