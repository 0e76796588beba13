"""Validation of third-party tasks: the object that a factory returns, and each record that a task returns.

Built-in tasks are not validated at run time, because they emit very many records. Tests validate their records against
the schemas instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

import msgspec

from codebatch.errors import InvalidConfiguration
from codebatch.model.record import RECORD_TYPES, Ast, Diagnostic, Failure, Record
from codebatch.model.task import TaskDeclaration
from codebatch_workers.api.protocols import FileTask, ProjectTask
from codebatch_workers.syntax.findings import OWN_TOOL
from codebatch_workers.syntax.source import SourceFile

LoadedTask = FileTask | ProjectTask

_RECORD_CHARACTERS_SHOWN = 200

_encode_record = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Record)


def validate_records(
    returned: object, file: SourceFile | None = None, *, has_object: Callable[[str], bool] | None = None
) -> list[Record]:
    """Validate what a task returned, and return it as a list of records.

    Raises TypeError for the first value that is not a record, or ValueError for the first invalid record.

    If a file is given, every record must belong to this file. Without a file (for a task of project scope), records may
    belong to any file. `has_object` returns whether the store has an object. It is needed because a record that refers
    to a missing object could never be read.
    """
    records = list(cast("Iterable[Record]", returned or ()))
    for record in records:
        if type(record) not in RECORD_TYPES:
            raise TypeError(f"a task must return records, not {type(record).__name__}")
        if type(record) is Failure:
            raise ValueError(f"a task must raise an exception instead of returning a failure: {_format_record(record)}")
        try:
            _decoder.decode(_encode_record(record))
        except msgspec.ValidationError as error:
            raise ValueError(f"{error}: {_format_record(record)}") from error
        if file is not None and (record.path, record.path_b64) != file.path_fields:
            raise ValueError(f"the record belongs to another file: {_format_record(record)}")
        if type(record) is Ast and has_object is not None and not has_object(record.object):
            raise ValueError(f"the record refers to an object that is not in the store: {_format_record(record)}")
    return records


def check_task(declaration: TaskDeclaration, task: object) -> LoadedTask:
    """Return the object that a factory returned, if it is a task of the declared scope.

    Otherwise, raise InvalidConfiguration.
    """
    is_of_project = declaration.scope == "project"
    if isinstance(task, ProjectTask if is_of_project else FileTask):
        return task
    verb = "run_project" if is_of_project else "run_file"
    raise InvalidConfiguration(
        f"{declaration.implementation} is declared with scope {declaration.scope}, "
        f"but the class of the task does not define the method `{verb}`",
        hint=f"rename the method `run` to `{verb}`" if hasattr(task, "run") else "see codebatch_workers.api.protocols",
    )


def with_default_names(record: Record, task: str) -> Record:
    """Return a record of a custom task. In a finding, the name of the task replaces a missing tool or code."""
    if not isinstance(record, Diagnostic) or (record.tool != OWN_TOOL and record.code):
        return record
    tool = task if record.tool == OWN_TOOL else record.tool
    return msgspec.structs.replace(record, tool=tool, code=record.code or task)


def _format_record(record: Record) -> str:
    return _encode_record(record).decode("utf-8")[:_RECORD_CHARACTERS_SHOWN]
