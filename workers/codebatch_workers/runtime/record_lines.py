"""Records as they are written, a line each: those that are wanted."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from codebatch.model.record import Record

record_decoder = msgspec.json.Decoder(Record)


def decode_kinds(lines: bytes, kinds: Collection[str]) -> list[Record]:
    """The records of some lines; only those of some kinds where any are named."""
    prefixes = tuple(b'{"kind":"%s"' % kind.encode() for kind in kinds) or (b"",)
    return record_decoder.decode_lines(
        b"".join(line for line in lines.splitlines(keepends=True) if line.startswith(prefixes))
    )


def lines_holding(lines: bytes, text: bytes) -> Iterator[tuple[int, int]]:
    """Where those of some lines begin and end that hold a text, without a look at the others one by one."""
    at = lines.find(text)
    while 0 <= at < len(lines):
        end = lines.index(b"\n", at) + 1
        yield lines.rfind(b"\n", 0, at) + 1, end
        at = lines.find(text, end)
