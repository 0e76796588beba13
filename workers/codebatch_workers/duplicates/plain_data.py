"""Recognition of blocks of data or imports. They are not reported, because developers do not merge such duplicates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

# A block is plain data if at least this share of its lines are values or imports.
_DATA_LINES_SHARE_MIN = 0.9
# One token of data, such as `80,`. Code lines contain no white space. A key can precede a value, as in `width:80,`.
_DATA_TOKEN = re.compile(
    rb"(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[-+]?(?:0[xX][0-9a-fA-F_]+|\d[\d_.]*(?:[eE][-+]?\d+)?)[a-zA-Z]{0,3}"
    rb"|(?:true|false|null|NULL|nil|None|True|False|undefined)(?!\w)|[A-Za-z_$][\w$]*:(?!:)|=>|[\[\]{}(),;:])"
)
# A key before a value in a Lua table or a keyword argument. The line must end like a list element.
_KEY_BEFORE_VALUE = re.compile(rb"(?<![\w.\])])[A-Za-z_]\w*=(?=[\"'{\[\d.-]|(?:true|false|nil|None|True|False)\W)")
_LIST_ELEMENT_ENDS = (b",", b"{", b"[", b"(")
_IMPORT_LINE = re.compile(
    rb"import(?:static)?[\w.*\"'{(@]|from[\w.]+import|using[\w.=]+;|use[\w\\:]+[;:{]|#include[<\"]|package[\w.]+;?\Z"
    rb"|require(?:_once|_relative)?[('\"]"
)


# The start of an import that lists its names in brackets on the following lines.
_IMPORT_LIST_START = re.compile(
    rb"(?:from[\w.]+import\(|import(?:\w+,)?\{|importtype\{|import\(|use[\w\\:]+\{|export(?:type)?\{)[\w,*:]*\Z"
)
_IMPORTED_NAME = re.compile(rb"[A-Za-z_$*][\w$:{}.\\,*]*\Z|[\w.]*\"[^\"]*\"\Z")
_IMPORT_LIST_END = re.compile(rb"[})]+(?:;|from[\"'].*)?\Z")


def is_plain_data(lines: Sequence[bytes]) -> bool:
    """Return whether nearly all code lines are imports, or values without names."""
    plain_min = _DATA_LINES_SHARE_MIN * len(lines)
    plain = len(lines)
    for is_import, line in zip(_mark_imports(lines), lines, strict=True):
        plain -= not is_import and not _is_value_line(line)
        if plain < plain_min:
            return False
    return True


def _is_value_line(line: bytes) -> bool:
    if b"=" in line and line.endswith(_LIST_ELEMENT_ENDS):
        line = _KEY_BEFORE_VALUE.sub(b"", line)
    return _DATA_TOKEN.match(line) is not None and not _DATA_TOKEN.sub(b"", line)


def _mark_imports(lines: Iterable[bytes]) -> Iterator[bool]:
    """Yield for each line whether it belongs to an import. An import can extend over several lines."""
    is_in_list = False
    for line in lines:
        if is_in_list and (_IMPORTED_NAME.match(line) or _IMPORT_LIST_END.match(line)):
            is_in_list = _IMPORT_LIST_END.match(line) is None
            yield True
            continue
        is_in_list = _IMPORT_LIST_START.match(line) is not None
        yield is_in_list or _IMPORT_LINE.match(line) is not None
