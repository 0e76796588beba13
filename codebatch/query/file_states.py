"""Of the files of a batch those that stand apart, and how many were understood in part or not at all."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from codebatch.errors import StoreCorrupt
from codebatch.model.entry import path_from_fields
from codebatch.model.record import CLASSES_APART, FileClass, ParseState
from codebatch.query.decoding import decode_lines
from codebatch.query.filters import RecordFilter
from codebatch.query.records import BatchRecords

_PLAIN = b'"class":"text"'
_PLAIN_CODE = b'"class":"text","parse":"ok"}'
_UNDERSTOOD = (b'"parse":"ok"}', b'"parse":"unsupported"}')


class FileStates(NamedTuple):
    """The paths of classes apart, and how many files were parsed in part, or have syntax errors.

    Where there is no other code, as in a directory of tests, nothing stands apart.
    """

    apart: frozenset[bytes] = frozenset()
    partial: int = 0
    broken: int = 0


class _File(msgspec.Struct, gc=False):
    class_: FileClass = msgspec.field(name="class")
    parse: ParseState
    path: str | None = None
    path_b64: str | None = None


_decoder = msgspec.json.Decoder(_File)


def file_states(records: BatchRecords) -> FileStates:
    """What `parse` tells of the files so far; nothing where the batch is without it. Raises StoreCorrupt."""
    if "parse" not in records.task_names:
        return FileStates()
    apart: set[bytes] = set()
    partial = broken = plain = 0
    for piece in records.pieces("parse", RecordFilter(kinds=("file",)), ()):
        for block in records.read(piece):
            plain += block.count(_PLAIN_CODE)
            for file in decode_lines(_decoder, b"\n".join(_told_apart(block))):
                partial += file.parse == "partial"
                broken += file.parse == "errors"
                if file.class_ in CLASSES_APART:
                    apart.add(_path(file))
    return FileStates(frozenset(apart) if plain else frozenset(), partial, broken)


def _path(file: _File) -> bytes:
    try:
        return path_from_fields(file.path, file.path_b64)
    except ValueError as error:
        raise StoreCorrupt(f"a record has no path: {error}") from error


def _told_apart(block: bytes) -> list[bytes]:
    """The lines of files but for those, nearly all, of which there is nothing to tell."""
    lines = (line for line in block.splitlines() if line.startswith(b'{"kind":"file"'))
    return [line for line in lines if _PLAIN not in line or not line.endswith(_UNDERSTOOD)]
