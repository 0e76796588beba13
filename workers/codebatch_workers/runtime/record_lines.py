"""Records as they are written, a line each: those that are wanted."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from codebatch.model.record import Record

record_decoder = msgspec.json.Decoder(Record)


def line_prefixes(kinds: Collection[str]) -> tuple[bytes, ...]:
    """How the lines of records of some kinds begin; of any kind where none is named."""
    return tuple(b'{"kind":"%s"' % kind.encode() for kind in kinds) or (b"",)


def decode_kinds(lines: bytes, kinds: Collection[str]) -> list[Record]:
    """The records of some lines; only those of some kinds where any are named."""
    if kinds:
        prefixes = line_prefixes(kinds)
        lines = b"".join(line for line in lines.splitlines(keepends=True) if line.startswith(prefixes))
    return record_decoder.decode_lines(lines)


def lines_holding(lines: bytes, text: bytes) -> Iterator[tuple[int, int]]:
    """Where those of some lines begin and end that hold a text, without a look at the others one by one."""
    at = lines.find(text)
    while 0 <= at < len(lines):
        end = lines.index(b"\n", at) + 1
        yield lines.rfind(b"\n", 0, at) + 1, end
        at = lines.find(text, end)
