"""The objects that records name: those of kind `ast` do, and they are needed for as long as the record is."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from codebatch.model.record_counts import Counts


class _ReferenceLine(msgspec.Struct, frozen=True):
    """Of a record, whether it names an object."""

    kind: str
    object: str = ""


_line_decoder = msgspec.json.Decoder(_ReferenceLine)


def may_name_objects(counts: Counts) -> bool:
    """Whether any of some records may name an object."""
    return "ast" in counts.kinds


def objects_named_in(lines: bytes) -> Iterator[str]:
    """The objects that record lines name. Raises ValueError."""
    try:
        yield from (line.object for line in _line_decoder.decode_lines(lines) if line.kind == "ast")
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error
