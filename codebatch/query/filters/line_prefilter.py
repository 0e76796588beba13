"""A prefilter of record lines by byte strings (marks), so that most other lines are never decoded. No I/O.

Marks follow from the encoding of records (SPEC.md "Records"). Lines that pass are decoded and filtered like all others.
So marks may let too many lines pass, but never too few.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec


def marks_of(field: str, wanted: Iterable[str]) -> Iterator[bytes]:
    """Yield the marks of lines in which a field equals one of some texts, or begins with it if the text ends with `*`.

    Texts that are not valid Unicode are skipped, because no record contains them.
    """
    for text in wanted:
        try:
            encoded = msgspec.json.encode(text.removesuffix("*"))
        except UnicodeEncodeError:
            continue
        yield b'"%b":%b' % (field.encode(), encoded[:-1] if text.endswith("*") else encoded)


def lines_with(marks: re.Pattern[bytes], block: bytes) -> bytes:
    """Return the lines of a block that contain a mark, in their order.

    The block consists of whole lines. `marks` matches neither an empty text nor a line end.
    """
    lines: list[bytes] = []
    end = 0
    while match := marks.search(block, end):
        end = block.find(b"\n", match.end())
        end = end if end >= 0 else len(block)
        lines.append(block[block.rfind(b"\n", 0, match.start()) + 1 : end])
    return b"\n".join(lines)
