"""Objects named by records of the kinds `ast` and `change`. An object is needed as long as such a record exists.

The `before` of a `change` record is not listed: it is the content of the record's file, which the snapshot names.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from codebatch.model.record_counts import RecordCounts


class _ReferenceLine(msgspec.Struct, frozen=True):
    """The members of a record that must be decoded to find out whether the record names an object."""

    kind: str
    object: str = ""
    after: str | None = None


_line_decoder = msgspec.json.Decoder(_ReferenceLine)


def may_name_objects(counts: RecordCounts) -> bool:
    """Return whether some of the counted records may name objects. Only the counts are needed, not the records."""
    return "ast" in counts.kinds or "change" in counts.kinds


def objects_named_in(lines: bytes) -> Iterator[str]:
    """Yield the digests of the objects that record lines name. Raises ValueError for invalid lines."""
    try:
        for line in _line_decoder.decode_lines(lines):
            if line.kind == "ast":
                yield line.object
            elif line.kind == "change" and line.after is not None:
                yield line.after
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error
