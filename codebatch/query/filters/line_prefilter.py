"""Marks: byte strings that the line of a record must hold, so that a line without them is never decoded. Pure.

They follow from how records are written (SPEC.md "Records"). A line that holds them is decoded and asked as all are
without, so marks may find too much and never too little.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property

import msgspec

Row = tuple[bytes, ...]
"""A line must hold any of them."""

_Find = Callable[[bytes, int], int]
"""Where a block holds any of a row at a place or behind it, the first; -1 where it does not."""


class LinePrefilter(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What a line must hold: one of each row; begin with one of `starts`, where there are any; and `part`, be it in
    capitals, or something for which a path may hold that without its line doing so.
    """

    starts: Row = ()
    rows: tuple[Row, ...] = ()
    part: bytes = b""

    def find(self, block: bytes) -> bytes:
        """Of a block of whole lines those that hold all that, in their order."""
        finds = self._finds
        # That of the first row is looked for at once as lines are.
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
        """Whether a path in there may hold the part, case ignored.

        Not all that is alike but for case is so byte by byte (the Kelvin sign is a k), and a path may be escaped, or in
        base64.
        """
        if not self.part or self.part in lines.lower():
            return True
        return not lines.isascii() or b"\\" in lines or b'_b64":' in lines


def starts_of(kinds: Iterable[str]) -> Row:
    """How the lines of records of some kinds begin."""
    return tuple(b'{"kind":%b,' % msgspec.json.encode(kind) for kind in kinds)


def row_of(field: str, wanted: Iterable[str], *, with_prefixes: bool = False) -> Row:
    """The row of a field that is one of some texts; `with_prefixes` one with a `*` at its end is how texts begin.

    What is no Unicode is in no record.
    """
    return tuple(b'"%b":%b' % (field.encode(), text) for text in _encoded(wanted, with_prefixes))


def row_of_ends(wanted: Iterable[str]) -> Row:
    """The row of a field that ends with one of some texts, of which one with a `*` may be anywhere in it."""
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
    # One pass for all of them: marks of one field begin alike, which is what is looked for first.
    search = re.compile(b"|".join(map(re.escape, row)) or b"(?!)").search

    def find(block: bytes, start: int) -> int:
        found = search(block, start)
        return -1 if found is None else found.start()

    return find


def _lines_with(find: _Find, block: bytes) -> list[bytes]:
    """The lines in which something is found, in their order."""
    lines: list[bytes] = []
    at = find(block, 0)
    while at >= 0:
        end = block.find(b"\n", at)
        end = end if end >= 0 else len(block)
        lines.append(block[block.rfind(b"\n", 0, at) + 1 : end])
        at = find(block, end)
    return lines
