"""Fingerprints: by what equal blocks of code are looked for across files (workers/TASKS.md "Duplicates").

A code line is a line without comments and white space, where something is left of it. A gram is GRAM lines; it is
chosen where the hash of its middle line is less than that of the next line and not greater than that of the one before,
or where neither it nor one of the three right before it is such. So two places with the same LINES_MIN lines have
chosen the same gram, whatever is around them. This is winnowing (Schleimer, Wilkerson, Aiken: Local Algorithms for
Document Fingerprinting, 2003) by the hashes of lines, so that only the grams that are chosen need a hash of their own,
and by local minima, for which no line needs Python code.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from heapq import merge
from itertools import compress, islice
from operator import lt
from typing import TYPE_CHECKING
from zlib import adler32, crc32

from codebatch.model.record import Fingerprints
from codebatch_workers.duplicates.code_lines import WHITESPACE_IN_LINE, without_comments
from codebatch_workers.duplicates.excluded_code import inline_tests, is_translation
from codebatch_workers.syntax.language.languages import LANGUAGES_OF_DATA
from codebatch_workers.syntax.source import SourceFile

if TYPE_CHECKING:
    from tree_sitter import Node

LINES_MIN = 10
GRAM = 7
# A file above this has none: nobody wrote it, and it would take 100 bytes of memory for each of its lines.
FINGERPRINTED_BYTES_MAX = 2 * 1024 * 1024
# So many grams begin in any LINES_MIN lines.
_GRAMS = LINES_MIN - GRAM + 1
_HASH_BYTES = 4
# Nobody merges what a program, others, or one moment in the history of a database made.
_WITHOUT = frozenset({"generated", "vendored", "migration"})


def fingerprints(file: SourceFile) -> Fingerprints | None:
    """The record of a file; None where it has none.

    Files have none that are not parsed, generated, vendored, migrations, above 2 MiB, data, translations, or shorter
    than LINES_MIN code lines. Tests inside of a file with other code count as comments.
    """
    if file.tree is None or file.language in LANGUAGES_OF_DATA or file.file_class in _WITHOUT:
        return None
    if is_translation(file.path):
        return None
    if len(file.utf8) > FINGERPRINTED_BYTES_MAX:
        return None
    tests = inline_tests(file)
    cut = _gaps(merge(file.captures.get("comment", ()), tests, key=_start)) if tests else file.derived(comments)
    lines = _without_white_space(without_comments(file.utf8, cut)) if tests else file.derived(written)
    if len(lines) < LINES_MIN:
        return None
    hashes, gaps = _winnow(lines)
    path, path_b64 = file.path_fields
    return Fingerprints(path=path, path_b64=path_b64, hashes=hashes, gaps=gaps, comments=array("I", cut).tobytes())


def written(file: SourceFile) -> list[bytes]:
    """The code lines of a file, without white space."""
    return _without_white_space(code(file))


def _without_white_space(text: bytes) -> list[bytes]:
    return text.translate(None, WHITESPACE_IN_LINE).split()


def code(file: SourceFile) -> bytes:
    """The source with its comments cut out and their line ends left in."""
    return without_comments(file.utf8, file.derived(comments))


def comments(file: SourceFile) -> list[int]:
    """Where the comments are: bytes to the first, its bytes, bytes to the second, its bytes, …"""
    return _gaps(file.captures.get("comment", ()))


def _start(node: Node) -> int:
    return node.start_byte


def _gaps(comments: Iterable[Node]) -> list[int]:
    gaps: list[int] = []
    position = 0
    for node in comments:
        start, end = node.start_byte, node.end_byte
        if start < position:
            continue  # A comment inside a comment, as Rust's documentation has it.
        gaps += (start - position, end - start)
        position = end
    return gaps


def _winnow(lines: Sequence[bytes]) -> tuple[bytes, bytes]:
    """The grams chosen of LINES_MIN lines or more: their hashes, and how many lines each begins behind the one before.

    The first of the file's lines is counted as one behind.
    """
    hashes = list(map(adler32, lines))
    marks = _chosen(hashes)
    data = array("I", hashes).tobytes()
    size = _HASH_BYTES * GRAM
    begins = compress(range(0, _HASH_BYTES * len(marks), _HASH_BYTES), marks)
    # No more than three grams that begin one behind the other are not chosen.
    gaps = marks.rstrip(b"\0").replace(b"\0\0\0\1", b"\4").replace(b"\0\0\1", b"\3").replace(b"\0\1", b"\2")
    return array("I", [crc32(data[begin : begin + size]) for begin in begins]).tobytes(), gaps


def _chosen(hashes: Sequence[int]) -> bytes:
    """For each gram 1 where it is chosen, else 0. A number holds a byte for each line or gram: all at once, in C."""
    grams = len(hashes) - GRAM + 1
    every = int.from_bytes(b"\1" * grams, "little")
    rises = int.from_bytes(bytes(map(lt, hashes, islice(hashes, 1, None))), "little")
    least = rises >> 8 & ~rises  # Of the line after the first; the line in the middle of a gram is GRAM // 2 behind.
    least = least >> 8 * (GRAM // 2 - 1) & every
    near = least
    for behind in range(1, _GRAMS):
        near |= least << 8 * behind
    lulls = every << 8 * (_GRAMS - 1) & ~near
    return ((least | lulls) & every).to_bytes(grams, "little")
