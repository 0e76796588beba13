"""A prefilter of record lines by byte strings (marks), so that lines without them are never decoded. No I/O.

Marks follow from the encoding of records (SPEC.md "Records"). Lines that pass are decoded and filtered like all others.
So marks may let too many lines pass, but never too few.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property

import msgspec

Row = tuple[bytes, ...]
"""Alternatives: a line must contain at least one of them."""

_Find = Callable[[bytes, int], int]
"""A function that returns the first position, at or after a start, of any alternative in a block, or -1."""


class LinePrefilter(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The marks of a filter.

    A line must begin with one of `starts`, if there are any. It must contain an alternative of each row. It must
    contain `part`, case ignored, or an encoding that may hide it.
    """

    starts: Row = ()
    rows: tuple[Row, ...] = ()
    part: bytes = b""

    def find(self, block: bytes) -> bytes:
        """Return the lines of a block that satisfy all conditions, in their order.

        The block consists of whole lines.
        """
        finds = self._finds
        # The first row is searched only once, while lines are split.
        if any(find(block, 0) < 0 for find in finds[1:]) or not self._may_hold_part(block):
            return b""
        if not (self.starts or self.rows or self.part):
            return block
        lines = _lines_with(finds[0], block) if finds else block.splitlines()
        if self.starts:
            lines = [line for line in lines if line.startswith(self.starts)]
        for find in finds[1:]:
            lines = [line for line in lines if find(line, 0) >= 0]
        if self.part:
            lines = list(filter(self._may_hold_part, lines))
        return b"\n".join(lines)

    @cached_property
    def _finds(self) -> tuple[_Find, ...]:
        return tuple(map(_find_any, self.rows))

    def _may_hold_part(self, lines: bytes) -> bool:
        """Return whether a path in some lines may contain `part`, case ignored.

        Characters that are equal except for case can differ in their bytes (the Kelvin sign equals `k`). A path can
        also be escaped or in base64.
        """
        if not self.part or self.part in lines.lower():
            return True
        return not lines.isascii() or b"\\" in lines or b'_b64":' in lines


def starts_of(kinds: Iterable[str]) -> Row:
    """Return the beginnings of the lines of records of some kinds."""
    return tuple(b'{"kind":%b,' % msgspec.json.encode(kind) for kind in kinds)


def row_of(field: str, wanted: Iterable[str], *, with_prefixes: bool = False) -> Row:
    """Return the row for a field that equals one of some texts.

    With `with_prefixes`, a text that ends with `*` is a prefix. Texts that are not valid Unicode are skipped, because
    no record contains them.
    """
    return tuple(b'"%b":%b' % (field.encode(), text) for text in _encoded(wanted, with_prefixes))


def row_of_ends(wanted: Iterable[str]) -> Row:
    """Return the row for a field that ends with one of some texts.

    A text that ends with `*` may occur anywhere in it.
    """
    return tuple(text[1:] for text in _encoded(wanted, True))


def _encoded(wanted: Iterable[str], with_prefixes: bool) -> Iterable[bytes]:
    for text in wanted:
        is_prefix = with_prefixes and text.endswith("*")
        try:
            encoded = msgspec.json.encode(text[:-1] if is_prefix else text)
        except UnicodeEncodeError:
            continue
        yield encoded[:-1] if is_prefix else encoded


def _find_any(row: Row) -> _Find:
    if len(row) == 1:
        (mark,) = row
        return lambda block, start: block.find(mark, start)
    # One pass searches all alternatives. Marks of a field have a common prefix, which the regular expression uses.
    search = re.compile(b"|".join(map(re.escape, row)) or b"(?!)").search

    def find(block: bytes, start: int) -> int:
        match = search(block, start)
        return -1 if match is None else match.start()

    return find


def _lines_with(find: _Find, block: bytes) -> list[bytes]:
    """Return the lines that contain a match, in their order."""
    lines: list[bytes] = []
    position = find(block, 0)
    while position >= 0:
        end = block.find(b"\n", position)
        end = end if end >= 0 else len(block)
        lines.append(block[block.rfind(b"\n", 0, position) + 1 : end])
        position = find(block, end)
    return lines
