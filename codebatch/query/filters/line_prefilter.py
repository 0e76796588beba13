"""A prefilter of record lines by byte strings (marks), so that most lines that do not match are never decoded. No I/O.

Marks follow from the encoding of records (SPEC.md "Records"). Lines with a mark are then decoded and filtered. So a
mark may be in too many lines, but must be in every matching line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec


def field_marks(field: str, wanted: Iterable[str]) -> Iterator[bytes]:
    """Yield a mark for each text in `wanted`. A line contains it if the field equals the text.

    If the text ends with `*`, a line contains the mark if the field begins with the text. Texts that are not valid
    Unicode are skipped, because no record contains them.
    """
    for text in wanted:
        try:
            encoded = msgspec.json.encode(text.removesuffix("*"))
        except UnicodeEncodeError:
            continue
        yield b'"%b":%b' % (field.encode(), encoded[:-1] if text.endswith("*") else encoded)


def lines_with_marks(marks: re.Pattern[bytes], block: bytes) -> bytes:
    """Return the lines of a block that contain a mark, in their order.

    The block consists of whole lines. The pattern `marks` matches neither an empty text nor a line end.
    """
    lines: list[bytes] = []
    end = 0
    while match := marks.search(block, end):
        end = block.find(b"\n", match.end())
        end = end if end >= 0 else len(block)
        lines.append(block[block.rfind(b"\n", 0, match.start()) + 1 : end])
    return b"\n".join(lines)
