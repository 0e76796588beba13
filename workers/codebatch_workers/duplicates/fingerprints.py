"""Fingerprints: hashes by which equal blocks of code in different files are found (workers/TASKS.md "Duplicates").

A code line is a line without its comments and white space, unless nothing remains. A gram is a sequence of GRAM code
lines. A file's fingerprints are the hashes of some of its grams.

The hash of a gram's middle line determines whether the gram is chosen. A gram is a local minimum if this hash is less
than the hash of the next line, and not greater than the hash of the previous line. Local minima are chosen. A gram is
also chosen if neither it nor any of the three grams before it is a local minimum. So two places with the same LINES_MIN
lines share a chosen gram, whatever code surrounds them.

This is winnowing (Schleimer, Wilkerson, Aiken: Local Algorithms for Document Fingerprinting, 2003), with two changes:
it compares hashes of lines, and chooses local minima. So only chosen grams need hashes of their own, and no line needs
Python code.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import compress, islice
from operator import lt
from zlib import adler32, crc32

from codebatch.model.record import Fingerprints
from codebatch_workers.duplicates.code_lines import WHITESPACE_IN_LINE, remove_comments
from codebatch_workers.duplicates.excluded_code import inline_tests, is_translation
from codebatch_workers.duplicates.import_statements import import_spans
from codebatch_workers.syntax.comments import shebang_end
from codebatch_workers.syntax.source import SourceFile

LINES_MIN = 10
LINES_PER_GRAM = 7
# A larger file has no fingerprints. Such a file was not written by hand, and would take 100 bytes of memory per line.
FINGERPRINTED_BYTES_MAX = 2 * 1024 * 1024
# The number of grams that fit into LINES_MIN lines.
_GRAMS_PER_WINDOW = LINES_MIN - LINES_PER_GRAM + 1
_HASH_BYTES = 4
# Files of these classes have no fingerprints, because their duplicates cannot be merged. The files are generated,
# third-party code, or database history.
_CLASSES_WITHOUT_FINGERPRINTS = frozenset({"generated", "vendored", "migration"})


def make_fingerprints(file: SourceFile) -> Fingerprints | None:
    """Return the fingerprints of a file, or None if it has none.

    These files have none:

    - files that are not parsed, or larger than FINGERPRINTED_BYTES_MAX
    - generated and vendored files, migrations, data and translations
    - files with fewer than LINES_MIN code lines

    Imports, and tests in a file with other code, are removed like comments.
    """
    if file.tree is None or file.syntax.is_declarative or file.file_class in _CLASSES_WITHOUT_FINGERPRINTS:
        return None
    if is_translation(file.path):
        return None
    if len(file.utf8) > FINGERPRINTED_BYTES_MAX:
        return None
    excluded = sorted([*import_spans(file), *((node.start_byte, node.end_byte) for node in inline_tests(file))])
    cut = alternating_lengths(merge(_comment_spans(file), excluded)) if excluded else file.derived(comment_gaps)
    lines = _strip_white_space(remove_comments(file.utf8, cut)) if excluded else file.derived(code_lines_without_space)
    if len(lines) < LINES_MIN:
        return None
    hashes, gaps = _choose_grams(lines)
    path, path_b64 = file.path_fields
    return Fingerprints(path=path, path_b64=path_b64, hashes=hashes, gaps=gaps, comments=array("I", cut).tobytes())


def code_lines_without_space(file: SourceFile) -> list[bytes]:
    """Return the code lines of a file, from which its fingerprints are computed."""
    return _strip_white_space(code_without_comments(file))


def _strip_white_space(text: bytes) -> list[bytes]:
    return text.translate(None, WHITESPACE_IN_LINE).split()


def code_without_comments(file: SourceFile) -> bytes:
    """Return the source without its comments. Line ends within comments stay."""
    return remove_comments(file.utf8, file.derived(comment_gaps))


def comment_gaps(file: SourceFile) -> list[int]:
    """Return the locations of comments: alternating lengths in bytes of code and of comments, code first."""
    return alternating_lengths(_comment_spans(file))


def _comment_spans(file: SourceFile) -> Iterator[tuple[int, int]]:
    """Yield the offsets of comments, ascending. A first line with `#!` is a comment in every language."""
    shebang = shebang_end(file.utf8)
    if shebang:
        yield 0, shebang
    for node in file.captures.get("comment", ()):
        yield node.start_byte, node.end_byte


def alternating_lengths(spans: Iterable[tuple[int, int]]) -> list[int]:
    """Convert the spans of comments, in ascending order, to lengths: of text, of a comment, of text, and so on."""
    gaps: list[int] = []
    position = 0
    for start, end in spans:
        if start < position:
            continue  # Rust's documentation comments contain nested comment nodes.
        gaps += (start - position, end - start)
        position = end
    return gaps


def _choose_grams(lines: Sequence[bytes]) -> tuple[bytes, bytes]:
    """Return the hashes of the chosen grams, and the distance of each chosen gram from the previous one.

    There must be at least LINES_MIN lines. A distance is a number of lines. The distance of the first chosen gram is
    counted from the line before the file.
    """
    hashes = list(map(adler32, lines))
    marks = _mark_chosen(hashes)
    data = array("I", hashes).tobytes()
    size = _HASH_BYTES * LINES_PER_GRAM
    begins = compress(range(0, _HASH_BYTES * len(marks), _HASH_BYTES), marks)
    # Between two chosen grams, at most three grams are skipped. So the three replacements convert all distances.
    gaps = marks.rstrip(b"\0").replace(b"\0\0\0\1", b"\4").replace(b"\0\0\1", b"\3").replace(b"\0\1", b"\2")
    return array("I", [crc32(data[begin : begin + size]) for begin in begins]).tobytes(), gaps


def _mark_chosen(hashes: Sequence[int]) -> bytes:
    """Return one byte for each gram: 1 if the gram is chosen, otherwise 0.

    Each big integer has one byte for every line or gram. So one operation on integers computes all bytes, in C.
    """
    grams = len(hashes) - LINES_PER_GRAM + 1
    all_marks = int.from_bytes(b"\1" * grams, "little")
    rises = int.from_bytes(bytes(map(lt, hashes, islice(hashes, 1, None))), "little")
    # Byte i refers to line i + 1. The middle line of a gram is GRAM // 2 lines after its first one.
    least = rises >> 8 & ~rises
    least = least >> 8 * (LINES_PER_GRAM // 2 - 1) & all_marks
    at_or_after_least = least
    for distance in range(1, _GRAMS_PER_WINDOW):
        at_or_after_least |= least << 8 * distance
    far_from_least = all_marks << 8 * (_GRAMS_PER_WINDOW - 1) & ~at_or_after_least
    return ((least | far_from_least) & all_marks).to_bytes(grams, "little")
