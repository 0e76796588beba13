"""Whether a block of code lines is worth telling: copies of data, or of imports, are nothing that anybody merges."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Of ten lines nine.
_SHARE = 0.9
# One token: code lines have no white space. A key may stand before a value, as in `width:80,`.
_DATA = re.compile(
    rb"(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[-+]?(?:0[xX][0-9a-fA-F_]+|\d[\d_.]*(?:[eE][-+]?\d+)?)[a-zA-Z]{0,3}"
    rb"|(?:true|false|null|NULL|nil|None|True|False|undefined)(?!\w)|[A-Za-z_$][\w$]*:(?!:)|=>|[\[\]{}(),;:])"
)
_IMPORT = re.compile(
    rb"import(?:static)?[\w.*\"'{(@]|from[\w.]+import|using[\w.=]+;|use[\w\\:]+[;:{]|#include[<\"]|package[\w.]+;?\Z"
    rb"|require(?:_once|_relative)?[('\"]"
)


def is_data(lines: Sequence[bytes]) -> bool:
    """Return whether nearly all code lines are values without names, or imports."""
    plain = sum(not _DATA.sub(b"", line) or _IMPORT.match(line) is not None for line in lines)
    return plain >= _SHARE * len(lines)
