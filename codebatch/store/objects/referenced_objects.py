"""Objects named by records. A record of kind `ast` names an object, which is needed as long as the record exists."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from codebatch.model.record_counts import RecordCounts


class _ReferenceLine(msgspec.Struct, frozen=True):
    """The members of a record that must be decoded to find out whether the record names an object."""

    kind: str
    object: str = ""


_line_decoder = msgspec.json.Decoder(_ReferenceLine)


def may_name_objects(counts: RecordCounts) -> bool:
    """Return whether some of the counted records may name objects. Only the counts are needed, not the records."""
    return "ast" in counts.kinds


def objects_named_in(lines: bytes) -> Iterator[str]:
    """Yield the digests of the objects that record lines name. Raises ValueError for invalid lines."""
    try:
        yield from (line.object for line in _line_decoder.decode_lines(lines) if line.kind == "ast")
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error
