"""Selection and decoding of record lines."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from codebatch.model.record import Record

record_decoder = msgspec.json.Decoder(Record)


def line_prefixes(kinds: Collection[str]) -> tuple[bytes, ...]:
    """Return the prefixes of the lines of the given kinds of records. For no kinds, return one empty prefix."""
    return tuple(b'{"kind":"%s"' % kind.encode() for kind in kinds) or (b"",)


def decode_kinds(lines: bytes, kinds: Collection[str]) -> list[Record]:
    """Decode record lines. If `kinds` is not empty, skip the lines of all other kinds."""
    if kinds:
        prefixes = line_prefixes(kinds)
        lines = b"".join(line for line in lines.splitlines(keepends=True) if line.startswith(prefixes))
    return record_decoder.decode_lines(lines)


def lines_holding(lines: bytes, text: bytes) -> Iterator[tuple[int, int]]:
    """Yield start and end of each line that contains `text`. Other lines are skipped by a search for `text`."""
    position = lines.find(text)
    while 0 <= position < len(lines):
        end = lines.index(b"\n", position) + 1
        yield lines.rfind(b"\n", 0, position) + 1, end
        position = lines.find(text, end)
