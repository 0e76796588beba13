"""How many files of a batch were understood in part, or not at all."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from codebatch.query.filters import RecordFilter
from codebatch.query.records import BatchRecords

# What ends the line of a file, and of no other record: in a text the quotation marks would be escaped.
_PARTIAL = b'"parse":"partial"}'
_BROKEN = b'"parse":"errors"}'
_PLAIN = b'"class":"text","parse":"ok"}'
_UNPARSED = re.compile(rb'"lang":"([^"]*)",[^\n{]*"class":"([a-z]+)","parse":"(?:skipped|unsupported)"}')
_PASSED_OVER = (b"binary", b"huge", b"minified")


class FileStates(NamedTuple):
    """How many files were parsed in part, how many have syntax errors, and how many are code and nothing else.

    `unparsed` counts those that were not parsed at all: binary, huge and minified ones as such, others by language, as
    there is no grammar for it, or they are too much for that.
    """

    partial: int
    broken: int
    plain: int
    unparsed: Counter[str]


def file_states(records: BatchRecords) -> FileStates:
    """What `parse` tells so far; nothing where the batch is without it. Raises StoreCorrupt."""
    partial = broken = plain = 0
    unparsed: Counter[str] = Counter()
    if "parse" in records.task_names:
        for piece in records.pieces("parse", RecordFilter(kinds=("file",)), ()):
            for block in records.read(piece):
                partial += block.count(_PARTIAL)
                broken += block.count(_BROKEN)
                plain += block.count(_PLAIN)
                found = _UNPARSED.findall(block)
                unparsed.update((of_class if of_class in _PASSED_OVER else lang).decode() for lang, of_class in found)
    return FileStates(partial, broken, plain, unparsed)
