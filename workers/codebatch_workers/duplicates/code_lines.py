"""Code lines: the lines of a file without comments and white space. Lines that would then be empty are left out.

The command line also uses this module, so it imports no parser. The locations of comments are taken from fingerprints.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import accumulate, compress, count

WHITESPACE_IN_LINE = b" \t\r\f\v"


def code_lines(utf8: bytes, comments: bytes) -> tuple[list[bytes], list[int]]:
    """Return the code lines of a file, and the number of each line in the file, from 1.

    `comments` are the locations of comments, in the format of `Fingerprints`.
    """
    lines = remove_comments(utf8, array("I", comments)).translate(None, WHITESPACE_IN_LINE).split(b"\n")
    return list(filter(None, lines)), list(compress(count(1), lines))


def remove_comments(utf8: bytes, comments: Iterable[int]) -> bytes:
    """Return the source without its comments. Line ends within comments stay.

    `comments` are alternating lengths in bytes: of code and of comments, code first.
    """
    pieces = []
    position = 0
    boundaries = accumulate(comments)
    for start, end in zip(boundaries, boundaries, strict=True):
        pieces.append(utf8[position:start])
        if utf8.find(b"\n", start, end) >= 0:
            pieces.append(b"\n" * utf8.count(b"\n", start, end))
        position = end
    pieces.append(utf8[position:])
    return b"".join(pieces)
