"""Fingerprints: by what equal blocks of code are looked for across files (SPEC.md "Duplicates").

A code line is a line without comments and white space, where something is left of it. Of any LINES_MIN code lines that
follow each other, the first six begin a gram of GRAM lines; the one whose first line has the least hash is
chosen, the first of several. So two places with the same LINES_MIN lines have chosen the same gram, whatever is around
them: winnowing (Schleimer, Wilkerson, Aiken: Local Algorithms for Document Fingerprinting, 2003), but over the hashes
of lines, so that only the grams that are chosen need a hash of their own.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate, islice, repeat
from operator import add, and_, lshift, sub
from typing import TYPE_CHECKING
from zlib import crc32

from codebatch.model.record import Fingerprints
from codebatch_workers.languages import LANGUAGES_OF_DATA
from codebatch_workers.source import SourceFile

if TYPE_CHECKING:
    from tree_sitter import Node

WHITESPACE_IN_LINE = b" \t\r\f\v"
LINES_MIN = 10
GRAM = 5
# A file above this has none: nobody wrote it, and it would take 100 bytes of memory for each of its lines.
FINGERPRINTED_BYTES_MAX = 2 * 1024 * 1024
_INDEX_BITS = 24
_INDEX_MASK = (1 << _INDEX_BITS) - 1
_CRC_BYTES = 4


def fingerprints(file: SourceFile) -> Fingerprints | None:
    """The record of a file; None where it has none.

    These have none: what is not parsed, generated, vendored, above 2 MiB, data, or shorter than LINES_MIN code lines.
    """
    if file.tree is None or file.language in LANGUAGES_OF_DATA or file.file_class in ("generated", "vendored"):
        return None
    if len(file.utf8) > FINGERPRINTED_BYTES_MAX:
        return None
    lines = file.derived(written)
    if len(lines) < LINES_MIN:
        return None
    chosen, hashes = _winnow(lines)
    path, path_b64 = file.path_fields
    return Fingerprints(
        path=path,
        path_b64=path_b64,
        hashes=tuple(hashes),
        gaps=tuple(map(sub, chosen, [0, *chosen[:-1]])),
        comments=tuple(file.derived(comments)),
    )


def written(file: SourceFile) -> list[bytes]:
    """The code lines of a file, without white space."""
    return code(file).translate(None, WHITESPACE_IN_LINE).split()


def code(file: SourceFile) -> bytes:
    """The source with its comments cut out and their line ends left in."""
    return without_comments(file.utf8, file.derived(comments))


def comments(file: SourceFile) -> list[int]:
    """Where the comments are: bytes to the first, its bytes, bytes to the second, its bytes, …"""
    return _gaps(file.captures.get("comment", ()))


def code_lines(utf8: bytes, comments: Sequence[int]) -> tuple[list[bytes], list[int]]:
    """The code lines of a file, and the 1-based number of each; `comments` as its fingerprints have them."""
    lines = without_comments(utf8, comments).translate(None, WHITESPACE_IN_LINE).split(b"\n")
    return list(filter(None, lines)), [number for number, line in enumerate(lines, 1) if line]


def without_comments(utf8: bytes, comments: Iterable[int]) -> bytes:
    """The source with its comments cut out and their line ends left in."""
    pieces = []
    position = 0
    places = accumulate(comments)
    for start, end in zip(places, places, strict=True):
        pieces.append(utf8[position:start])
        pieces.append(b"\n" * utf8.count(b"\n", start, end))
        position = end
    pieces.append(utf8[position:])
    return b"".join(pieces)


def _gaps(comments: Sequence[Node]) -> list[int]:
    gaps: list[int] = []
    position = 0
    for node in comments:
        start, end = node.start_byte, node.end_byte
        if start < position:
            continue  # A comment inside a comment, as Rust's documentation has it.
        gaps += (start - position, end - start)
        position = end
    return gaps


def _winnow(lines: Sequence[bytes]) -> tuple[list[int], list[int]]:
    """The grams chosen of LINES_MIN lines or more: the index of their first line, ascending, and their hashes."""
    crcs = list(map(crc32, lines))
    # A hash with its place behind it: the least of several is the first of the least.
    ranks = list(map(add, map(lshift, crcs, repeat(_INDEX_BITS)), range(len(crcs) - GRAM + 1)))
    chosen = list(map(and_, dict.fromkeys(_least(ranks)), repeat(_INDEX_MASK)))
    data = array("I", crcs).tobytes()
    return chosen, [crc32(data[_CRC_BYTES * index : _CRC_BYTES * (index + GRAM)]) for index in chosen]


def _least(ranks: Sequence[int]) -> list[int]:
    """The least of any six (LINES_MIN - GRAM + 1) that follow each other: of three of the least of two, for speed."""
    two = [one if one < other else other for one, other in zip(ranks, islice(ranks, 1, None), strict=False)]
    threes = zip(two, islice(two, 2, None), islice(two, 4, None), strict=False)
    return [(a if a < c else c) if a < b else (b if b < c else c) for a, b, c in threes]
