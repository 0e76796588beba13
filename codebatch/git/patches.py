"""The hunks in what git writes with `--patch --unified=0 --full-index`, of chosen files of a commit and its parents.

A line of content begins with a sign, a space or a backslash, so that no file can say what the lines about files and
hunks say. What a path says does not matter: hunks are known by the names of the two versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from codebatch.model.text.lazy_patterns import LatePattern

BLOB_BYTES = 12
"""So many bytes of the name of a version are kept: enough to tell all versions apart."""

_PATCH = LatePattern(
    rb"^(?:index ([0-9a-f]+)\.\.([0-9a-f]+)|@@ -([0-9]+)(?:,([0-9]+))? \+([0-9]+)(?:,([0-9]+))? @@)", re.MULTILINE
)


class Hunk(NamedTuple):
    """Lines of an old version in whose place there are others in the new one, each from a line to before a line."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


Pair = tuple[bytes, bytes]
"""The blobs of an old and of a new version."""


def blob_from_name(name: bytes) -> bytes:
    """Return what is kept of the name of a version, which is hexadecimal."""
    return bytes.fromhex(name.decode("ascii"))[:BLOB_BYTES]


def parse_patch(blocks: Iterable[bytes]) -> dict[Pair, list[Hunk]]:
    """Return the hunks of each pair, in the order of the patch. Each block is of whole lines."""
    found: dict[Pair, list[Hunk]] = {}
    hunks: list[Hunk] = []
    for block in blocks:
        for each in _PATCH.finditer(block):
            if each[1] is not None:
                hunks = found[blob_from_name(each[1]), blob_from_name(each[2])] = []
            else:
                hunks.append(Hunk(*_span(each[3], each[4]), *_span(each[5], each[6])))
    return found


def _span(start: bytes, count: bytes | None) -> tuple[int, int]:
    """The first line of some and the line behind the last; of none git names the line before."""
    lines = 1 if count is None else int(count)
    first = int(start) + (lines == 0)
    return first, first + lines
