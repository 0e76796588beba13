"""Code lines: the lines of a file without comments and white space, where something is left of them.

Imports no parser: the command line asks for them too, by the comments that the fingerprints of a file name.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import accumulate, compress, count

WHITESPACE_IN_LINE = b" \t\r\f\v"


def code_lines(utf8: bytes, comments: bytes) -> tuple[list[bytes], list[int]]:
    """The code lines of a file, and the 1-based number of each; `comments` as its fingerprints have them."""
    lines = without_comments(utf8, array("I", comments)).translate(None, WHITESPACE_IN_LINE).split(b"\n")
    return list(filter(None, lines)), list(compress(count(1), lines))


def without_comments(utf8: bytes, comments: Iterable[int]) -> bytes:
    """The source with its comments cut out and their line ends left in."""
    pieces = []
    position = 0
    places = accumulate(comments)
    for start, end in zip(places, places, strict=True):
        pieces.append(utf8[position:start])
        if utf8.find(b"\n", start, end) >= 0:
            pieces.append(b"\n" * utf8.count(b"\n", start, end))
        position = end
    pieces.append(utf8[position:])
    return b"".join(pieces)
