"""The hunks in what git writes with `--patch --unified=0 --full-index`, of chosen files of a commit and its parents.

A line of content begins with a sign, a space or a backslash, so that no file can say what the lines about files and
hunks say. What a path says does not matter: hunks are known by the names of the two versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from codebatch.model.late_patterns import LatePattern

BLOB_BYTES = 12
"""So many bytes of the name of a version are kept: enough to tell all versions apart."""

_PATCH = LatePattern(
    rb"^(?:index ([0-9a-f]+)\.\.([0-9a-f]+)|@@ -([0-9]+)(?:,([0-9]+))? \+([0-9]+)(?:,([0-9]+))? @@)", re.MULTILINE
)
_COMBINED_INDEX = LatePattern(rb"index ([0-9a-f,]+)\.\.([0-9a-f]+)")
_COMBINED_SPAN = LatePattern(rb"[-+]([0-9]+)(?:,([0-9]+))?(?= )")


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


def parse_patch(blocks: Iterable[bytes], found: dict[Pair, list[Hunk]]) -> None:
    """Add the hunks of commits of one parent. Each block is of whole lines."""
    hunks: list[Hunk] = []
    for block in blocks:
        for each in _PATCH.finditer(block):
            if each[1] is not None:
                hunks = found[blob_from_name(each[1]), blob_from_name(each[2])] = []
            else:
                hunks.append(Hunk(*_span(each[3], each[4]), *_span(each[5], each[6])))


def parse_combined_patch(blocks: Iterable[bytes], found: dict[Pair, list[Hunk]]) -> None:
    """Add the hunks of merges, as `-c` writes them: each line has a sign for every parent."""
    parents: list[_Parent] = []
    new_line, is_in_hunk = 0, False
    for block in blocks:
        for line in block.split(b"\n"):
            if is_in_hunk and line[:1] in _SIGNS:
                is_lost = b"-" in line[: len(parents)]
                for sign, parent in zip(line, parents, strict=False):
                    parent.add(sign, new_line, is_lost=is_lost)
                new_line += not is_lost
                continue
            is_in_hunk = is_in_hunk and line[:1] in (b"\\", b"")
            if line.startswith(b"index ") and (index := _COMBINED_INDEX.match(line)) is not None:
                pairs = [(blob_from_name(old), blob_from_name(index[2])) for old in index[1].split(b",")]
                parents = [_Parent(found.setdefault(pair, [])) for pair in pairs]
            elif line.startswith(b"@@@"):
                spans = _COMBINED_SPAN.finditer(line.partition(b" @@@")[0] + b" ")
                *old, new = (_span(each[1], each[2]) for each in spans)
                new_line, is_in_hunk = new[0], True
                for span, parent in zip(old, parents, strict=False):
                    parent.begin(span[0])


_SIGNS = (b" ", b"+", b"-")


class _Parent:
    """The hunks of a merge and one of its parents."""

    def __init__(self, hunks: list[Hunk]) -> None:
        self._hunks = hunks
        self._hunks.clear()
        self._old_line = 0

    def begin(self, old_line: int) -> None:
        self._old_line = old_line

    def add(self, sign: int, new_line: int, *, is_lost: bool) -> None:
        """Add a line of the merge, or one that some parents have and the merge has not."""
        if sign == _MINUS:
            self._grow(new_line, old=1, new=0)
        elif sign == _PLUS:
            self._grow(new_line, old=0, new=1)
        if sign == _MINUS or (sign == _SPACE and not is_lost):
            self._old_line += 1

    def _grow(self, new_line: int, *, old: int, new: int) -> None:
        hunks, old_line = self._hunks, self._old_line
        if hunks and (hunks[-1].old_end, hunks[-1].new_end) == (old_line, new_line):
            last = hunks.pop()
            hunks.append(Hunk(last.old_start, old_line + old, last.new_start, new_line + new))
        else:
            hunks.append(Hunk(old_line, old_line + old, new_line, new_line + new))


_MINUS, _PLUS, _SPACE = b"-+ "


def _span(start: bytes, count: bytes | None) -> tuple[int, int]:
    """The first line of some and the line behind the last; of none git names the line before."""
    lines = 1 if count is None else int(count)
    first = int(start) + (lines == 0)
    return first, first + lines
