"""Validation of third-party tasks: the object that a factory returns, and each value that a task returns.

Built-in tasks are not validated at run time, because they emit very many records. Tests validate their records against
the schemas instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import cast

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.errors import InvalidConfiguration
from codebatch.model.change import ChangeRefusal
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.entry import path_fields
from codebatch.model.record import RECORD_TYPES, Diagnostic, Failure, FileChange, Record
from codebatch.model.task import TaskDeclaration
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.store.objects.referenced_objects import objects_named_in
from codebatch_workers.api.protocols import FileTask, ProjectTask, refuse_object
from codebatch_workers.runtime.changes.gates import SyntaxErrorFinder, TaskApplication, find_refusal
from codebatch_workers.syntax.edited_files import EditedFile
from codebatch_workers.syntax.findings import OWN_TOOL
from codebatch_workers.syntax.source import SourceFile

LoadedTask = FileTask | ProjectTask

_RECORD_CHARACTERS_SHOWN = 200

_encode_record = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Record)


def validate_records(
    returned: object,
    file: SourceFile | None = None,
    apply_task: TaskApplication | None = None,
    *,
    find_errors: SyntaxErrorFinder = lambda _: (),
    has_object: Callable[[str], bool] | None = None,
    put_object: Callable[[bytes], Digest] = refuse_object,
) -> list[Record]:
    """Validate what a task returned, and return it as a list of records.

    The new content of a proposed change is stored by `put_object`, and a record replaces the change. A change that
    changes nothing is left out. If `apply_task` is given, the gates check the change. It calls the task on a file.
    `find_errors` returns the syntax errors of a file, as the task `parse` reports them.

    Raises TypeError for the first value that is not a record, or ValueError for the first invalid record.

    If a file is given, every record must belong to this file. Without a file (for a task of project scope), records may
    belong to any file. `has_object` returns whether the store has an object. It is needed because a record that refers
    to a missing object could never be read.
    """
    if type(returned) is EditedFile:
        raise TypeError("a task must yield its change, not return it: `yield file.change(…)`")
    records: list[Record] = []
    changed: set[tuple[str | UnsetType, str | UnsetType]] = set()
    for value in cast("Iterable[object]", returned or ()):
        if type(value) is EditedFile:
            if not value.is_change:
                continue
            refusal = None
            if file is not None and apply_task is not None and value.path == file.path:
                refusal = find_refusal(file, value, apply_task, find_errors)
            record: Record = _change_record(value, put_object, refusal)
        else:
            record = _valid_record(value, has_object)
        if file is not None and (record.path, record.path_b64) != file.path_fields:
            raise ValueError(f"the record belongs to another file: {_format_record(record)}")
        if type(record) is FileChange:
            if (record.path, record.path_b64) in changed:
                raise ValueError(f"a task can propose one change of a file, not several: {_format_record(record)}")
            changed.add((record.path, record.path_b64))
            if file is not None and record.before != digest_bytes(file.content):
                raise ValueError(f"the record changes another content than that of the file: {_format_record(record)}")
        records.append(record)
    return records


def record_validator(objects: PackWriter | None, find_errors: SyntaxErrorFinder) -> Callable[..., list[Record]]:
    """Return `validate_records` with the objects of a store. Without a store, no change can be proposed."""
    if objects is None:
        return partial(validate_records, find_errors=find_errors)
    return partial(validate_records, find_errors=find_errors, has_object=objects.has_object, put_object=objects.add)


def _change_record(
    edited: EditedFile, put_object: Callable[[bytes], Digest], refusal: ChangeRefusal | None
) -> FileChange:
    """Return the record of a change. Its new content is stored, and is on disk before the record is."""
    path, path_b64 = path_fields(edited.path)
    return FileChange(
        path=path,
        path_b64=path_b64,
        before=edited.before,
        after=None if edited.content is None else put_object(edited.content),
        executable=edited.executable,
        added=edited.added,
        removed=edited.removed,
        refused_by=UNSET if refusal is None else refusal.gate,
        evidence="" if refusal is None else refusal.evidence,
    )


def _valid_record(value: object, has_object: Callable[[str], bool] | None) -> Record:
    """Return a value that is a valid record. Raises TypeError or ValueError for all other values."""
    if type(value) not in RECORD_TYPES:
        raise TypeError(f"a task must return records, not {type(value).__name__}")
    record = cast("Record", value)
    if type(record) is Failure:
        raise ValueError(f"a task must raise an exception instead of returning a failure: {_format_record(record)}")
    lines = _encode_record(record)
    try:
        _decoder.decode(lines)
    except msgspec.ValidationError as error:
        raise ValueError(f"{error}: {_format_record(record)}") from error
    if has_object is not None and not all(map(has_object, objects_named_in(lines))):
        raise ValueError(f"the record refers to an object that is not in the store: {_format_record(record)}")
    return record


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
