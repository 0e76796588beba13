"""Offsets in the content of a file, given offsets in its text in UTF-8.

So an edit of the text can be made in the original bytes, whatever their encoding, and changes no other byte.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable

from codebatch_workers.syntax.language.encodings import UNKNOWN_ENCODING
from codebatch_workers.syntax.source import SourceFile

_REPLACEMENT_BYTES = len("\N{REPLACEMENT CHARACTER}".encode())


def content_offsets(file: SourceFile, offsets: Iterable[int]) -> dict[int, int]:
    """Return the offset in `file.content` for each of some offsets in `file.utf8`. None may be within a character.

    Raises ValueError if the content is not exactly the encoded text. Then an offset may have no counterpart.
    """
    ordered = sorted(set(offsets))
    content, utf8 = file.content, file.utf8
    mark = _mark_bytes(content)
    if file.encoding == "utf-8" and len(content) - mark == len(utf8):
        return {offset: offset + mark for offset in ordered}
    if file.encoding == UNKNOWN_ENCODING:
        return _offsets_around_invalid_bytes(file, ordered)
    places: dict[int, int] = {}
    place, before = mark, 0
    for offset in (*ordered, len(utf8)):
        piece = utf8[before:offset].decode("utf-8").encode(file.encoding)
        if content[place : place + len(piece)] != piece:
            raise ValueError("the text of the file is not its exact content")
        place, before = place + len(piece), offset
        places[offset] = place
    if place != len(content):
        raise ValueError("the text of the file is not its exact content")
    return places


def _mark_bytes(content: bytes) -> int:
    """Return the length of the byte order mark."""
    marks = (codecs.BOM_UTF8, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return next((len(mark) for mark in marks if content.startswith(mark)), 0)


def _offsets_around_invalid_bytes(file: SourceFile, ordered: Iterable[int]) -> dict[int, int]:
    """Return offsets in UTF-8 with invalid bytes. In `utf8`, U+FFFD stands for each invalid sequence."""
    content = memoryview(file.content)
    places: dict[int, int] = {}
    pending = iter(ordered)
    offset = next(pending, None)
    place = text_place = 0  # The position after the last invalid sequence, in the content and in `utf8`.
    while True:
        try:
            codecs.utf_8_decode(content[place:], "strict", True)
            valid, invalid = len(content) - place, 0
        except UnicodeDecodeError as error:
            valid, invalid = error.start, error.end - error.start
        while offset is not None and offset <= text_place + valid:
            places[offset] = place + offset - text_place
            offset = next(pending, None)
        if not invalid:
            break
        place, text_place = place + valid + invalid, text_place + valid + _REPLACEMENT_BYTES
    if offset is not None or text_place + valid != len(file.utf8):
        raise ValueError("the text of the file is not its exact content")
    return places
