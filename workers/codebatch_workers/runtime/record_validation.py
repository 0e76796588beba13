"""Checks of tasks that are not built in: of what a factory makes, and of the records of a file.

Our own tasks are not asked: their records are held against the schemas by tests, and there are millions of them.
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

Task = FileTask | ProjectTask

_SHOWN_CHARACTERS_MAX = 200

_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Record)


def validate_records(
    given: object, file: SourceFile | None = None, *, has_object: Callable[[str], bool] | None = None
) -> list[Record]:
    """The same as a list. Raises TypeError or ValueError that names the first one that is no record of the file's.

    Without a file (a task of project scope) they may be of any. `has_object` says whether the store has an object: a
    record that names another one could never be read.
    """
    records = list(cast("Iterable[Record]", given or ()))
    for each in records:
        if type(each) not in RECORD_TYPES:
            raise TypeError(f"a task must return records, not {type(each).__name__}")
        if type(each) is Failure:
            raise ValueError(f"a task must raise an exception instead of returning a failure: {_shown(each)}")
        try:
            _decoder.decode(_encode(each))
        except msgspec.ValidationError as error:
            raise ValueError(f"{error}: {_shown(each)}") from error
        if file is not None and (each.path, each.path_b64) != file.path_fields:
            raise ValueError(f"the record belongs to another file: {_shown(each)}")
        if type(each) is Ast and has_object is not None and not has_object(each.object):
            raise ValueError(f"the record refers to an object that is not in the store: {_shown(each)}")
    return records


def check_task(declaration: TaskDeclaration, made: object) -> Task:
    """Return what a factory made. Raises InvalidConfiguration where it is no task of the scope that was declared."""
    is_of_project = declaration.scope == "project"
    if isinstance(made, ProjectTask if is_of_project else FileTask):
        return made
    verb = "run_project" if is_of_project else "run_file"
    raise InvalidConfiguration(
        f"{declaration.implementation} is declared with scope {declaration.scope}, "
        f"but the class of the task does not define the method `{verb}`",
        hint=f"rename the method `run` to `{verb}`" if hasattr(made, "run") else "see codebatch_workers.api.protocols",
    )


def named(record: Record, task: str) -> Record:
    """A finding of a task that is not built in bears its name, where it names no other tool, or no code, itself."""
    if not isinstance(record, Diagnostic) or (record.tool != OWN_TOOL and record.code):
        return record
    tool = task if record.tool == OWN_TOOL else record.tool
    return msgspec.structs.replace(record, tool=tool, code=record.code or task)


def _shown(record: Record) -> str:
    return _encode(record).decode("utf-8")[:_SHOWN_CHARACTERS_MAX]
