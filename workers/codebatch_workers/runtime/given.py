"""What tasks of others give, before it is believed: records, sound ones, of the file that was asked about.

Our own tasks are not asked: their records are held against the schemas by tests, and there are millions of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import msgspec

from codebatch.model.record import RECORD_TYPES, Diagnostic, Failure, Record
from codebatch_workers.syntax.findings import OWN_TOOL
from codebatch_workers.syntax.source import SourceFile

_SHOWN_CHARACTERS_MAX = 200

_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Record)


def check_records(given: object, file: SourceFile | None = None) -> list[Record]:
    """The same as a list. Raises TypeError or ValueError that names the first one that is no record of the file's.

    Without a file (a task of project scope) they may be of any.
    """
    records = list(cast("Iterable[Record]", given or ()))
    for each in records:
        if type(each) not in RECORD_TYPES:
            raise TypeError(f"a task gives records, not {type(each).__name__}")
        if type(each) is Failure:
            raise ValueError(f"a task gives no failure, it raises: {_shown(each)}")
        try:
            _decoder.decode(_encode(each))
        except msgspec.ValidationError as error:
            raise ValueError(f"{error}: {_shown(each)}") from error
        if file is not None and (each.path, each.path_b64) != file.path_fields:
            raise ValueError(f"a record of another file: {_shown(each)}")
    return records


def named(record: Record, task: str) -> Record:
    """A finding of a task that is not built in bears its name, where it names no other tool, or no code, itself."""
    if not isinstance(record, Diagnostic) or (record.tool != OWN_TOOL and record.code):
        return record
    tool = task if record.tool == OWN_TOOL else record.tool
    return msgspec.structs.replace(record, tool=tool, code=record.code or task)


def _shown(record: Record) -> str:
    return _encode(record).decode("utf-8")[:_SHOWN_CHARACTERS_MAX]
