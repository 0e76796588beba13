"""Parsing of hunks in the output of `git diff-tree --patch --unified=0 --full-index`.

Lines with file content begin with `+`, `-`, a space or a backslash. So file content cannot be mistaken for the lines
that describe files and hunks. Paths are ignored: hunks are identified by the blob hashes of both versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

BLOB_PREFIX_BYTES = 12
"""Length in bytes to which blob hashes are truncated: enough to distinguish all versions in a repository."""

_PATCH_LINE = re.compile(
    rb"^(?:index ([0-9a-f]+)\.\.([0-9a-f]+)|@@ -([0-9]+)(?:,([0-9]+))? \+([0-9]+)(?:,([0-9]+))? @@)", re.MULTILINE
)


class Hunk(NamedTuple):
    """Lines of an old version, and the lines of the new version that replaced them. Ends are exclusive."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


BlobPair = tuple[bytes, bytes]
"""The truncated blob hashes of an old and a new version of a file."""


def blob_from_name(name: bytes) -> bytes:
    """Return the bytes of a hexadecimal blob hash, truncated to BLOB_BYTES."""
    return bytes.fromhex(name.decode("ascii"))[:BLOB_PREFIX_BYTES]


def parse_patch(blocks: Iterable[bytes]) -> dict[BlobPair, list[Hunk]]:
    """Return the hunks of each pair, in the order of the patch. Each block consists of whole lines."""
    hunks_by_pair: dict[BlobPair, list[Hunk]] = {}
    hunks: list[Hunk] = []
    for block in blocks:
        for match in _PATCH_LINE.finditer(block):
            if match[1] is not None:
                hunks = hunks_by_pair[blob_from_name(match[1]), blob_from_name(match[2])] = []
            else:
                hunks.append(Hunk(*_line_span(match[3], match[4]), *_line_span(match[5], match[6])))
    return hunks_by_pair


def _line_span(start: bytes, count: bytes | None) -> tuple[int, int]:
    """Return the first line of a range, and the line after the last one. `start` and `count` are from a hunk header.

    For an empty range, git reports the line before the range.
    """
    lines = 1 if count is None else int(count)
    first = int(start) + (lines == 0)
    return first, first + lines
