"""How many files of a batch were understood in part, or not at all."""

from __future__ import annotations

from typing import NamedTuple

from codebatch.query.filters import RecordFilter
from codebatch.query.records import BatchRecords

# What ends the line of a file, and of no other record: in a text the quotation marks would be escaped.
_PARTIAL = b'"parse":"partial"}'
_BROKEN = b'"parse":"errors"}'
_PLAIN = b'"class":"text","parse":"ok"}'


class FileStates(NamedTuple):
    """How many files were parsed in part, how many have syntax errors, and how many are code and nothing else."""

    partial: int = 0
    broken: int = 0
    plain: int = 0


def file_states(records: BatchRecords) -> FileStates:
    """What `parse` tells so far; nothing where the batch is without it. Raises StoreCorrupt."""
    partial = broken = plain = 0
    if "parse" in records.task_names:
        for piece in records.pieces("parse", RecordFilter(kinds=("file",)), ()):
            for block in records.read(piece):
                partial += block.count(_PARTIAL)
                broken += block.count(_BROKEN)
                plain += block.count(_PLAIN)
    return FileStates(partial, broken, plain)
