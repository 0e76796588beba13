"""Of what class files are: which stand apart, and which were parsed in part."""

from __future__ import annotations

from functools import cache

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.errors import StoreCorrupt
from codebatch.model.entry import path_from_fields
from codebatch.model.late_patterns import LatePattern
from codebatch.model.record import CLASSES_APART
from codebatch.query.apart import Apart
from codebatch.query.decoding import decode_lines, line_at
from codebatch.query.filters import RecordFilter
from codebatch.query.records import BatchRecords

# What ends the line of a file, and of no other record: in a text the quotation marks would be escaped.
_TOLD = LatePattern(b'"class":"(?:%b)"|"parse":"(?:errors|partial)"}' % "|".join(sorted(CLASSES_APART)).encode())
IN_PART = ("errors", "partial")
"""The states of files that were parsed in part."""

_TESTS = frozenset(("fixture", "test", "example"))


class _File(msgspec.Struct, gc=False):
    class_: str = msgspec.field(name="class")
    parse: str
    path: str | UnsetType = UNSET
    path_b64: str | UnsetType = UNSET


@cache
def _decoder() -> msgspec.json.Decoder[_File]:
    return msgspec.json.Decoder(_File)


class FileClasses(msgspec.Struct, frozen=True):
    """The files of a batch that stand apart, and those that were parsed in part, or have syntax errors."""

    apart: dict[bytes, Apart]
    in_part: set[bytes]


def read_file_classes(records: BatchRecords) -> FileClasses:
    """What `parse` tells of files so far; nothing where the batch is without it. Raises StoreCorrupt."""
    found = FileClasses({}, set())
    if "parse" not in records.task_names:
        return found
    for piece in records.pieces("parse", RecordFilter(kinds=("file",)), ()):
        for block in records.read(piece):
            lines = dict.fromkeys(line_at(block, match.start()) for match in _TOLD.finditer(block))
            for file in decode_lines(_decoder(), b"\n".join(lines)):
                path = _path(file)
                if file.class_ in CLASSES_APART:
                    found.apart[path] = "test" if file.class_ in _TESTS else "foreign"
                if file.parse in IN_PART:
                    found.in_part.add(path)
    return found


def _path(file: _File) -> bytes:
    try:
        return path_from_fields(file.path, file.path_b64)
    except ValueError as error:
        raise StoreCorrupt(f"a record has no path: {error}") from error
