"""Fields of records and their values, including default values that record lines omit."""

from __future__ import annotations

import functools
import os.path
from base64 import b64decode
from collections.abc import Iterable, Mapping
from typing import Literal, TypeVar

import msgspec
from msgspec import UNSET

from codebatch.errors import StoreCorrupt
from codebatch.model.entry import display_path
from codebatch.model.record import RECORD_KINDS, RECORD_TYPES, TAG_BY_TYPE, BaseRecord
from codebatch.model.task import JsonValue

JsonRecord = dict[str, JsonValue]
R = TypeVar("R", bound=BaseRecord)
PathKey = tuple[JsonValue, JsonValue]
FileLanguages = Mapping[PathKey, str]
"""The language of each file. The key of a file is the result of `path_key` for its records."""
NO_LANGUAGES: FileLanguages = {}

DERIVED_FIELDS = ("dir", "lang")
"""Fields that are not in record lines, but derived for every record: the directory and the language of its file."""
PATH_FIELDS = ("path", "other_path")
"""Path fields. If the path is not UTF-8, the record has the field with the suffix `_b64` instead."""
RankingField = Literal["kind", "code", "severity", "lang", "path", "file", "dir"]
"""The rankings of `codebatch top` that are not names of record fields."""
METRIC_PREFIX = "metric:"
"""The prefix of a metric name in a ranking."""


def cell_text(record: JsonRecord) -> str:
    """Return the cell of a notebook that a record is about, in display form. Return "" for records of other files."""
    return f" (cell {record['cell']}, line {record['cell_line']})" if "cell" in record else ""


def record_path(record: JsonRecord, field: str = "path") -> str:
    """Return a path of a record for display. `field` selects `path` or `other_path`."""
    path_b64 = record.get(f"{field}_b64")
    if isinstance(path_b64, str):
        return display_path(b64decode(path_b64))
    return str(record.get(field, ""))


def as_typed_record(record: JsonRecord, type_: type[R]) -> R:
    """Convert a record to a record type. Raises StoreCorrupt if a member is missing or has another type."""
    try:
        return msgspec.convert(record, type_)
    except msgspec.ValidationError as error:
        raise StoreCorrupt(f"a record is not a valid {type_.__name__.lower()}: {error}") from error


def path_key(record: JsonRecord) -> PathKey:
    """Return the key that identifies the file of a record."""
    return record.get("path"), record.get("path_b64")


def record_fields(kinds: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the fields of some kinds of records, each once, beginning with `kind` and `path`."""
    defaults = _field_defaults()
    named = {field: None for kind in kinds for field in defaults[kind]}
    return tuple({"kind": None, "path": None, **named, **dict.fromkeys(DERIVED_FIELDS)})


def select_fields(record: JsonRecord, fields: Iterable[str], languages: FileLanguages) -> JsonRecord:
    """Return a record with only some fields.

    A path that is not UTF-8 stays in base64, under `path_b64` or `other_path_b64`.
    """
    row: JsonRecord = {}
    for field in fields:
        encoded = f"{field}_b64"
        if field in PATH_FIELDS and encoded in record:
            row[encoded] = record[encoded]
        else:
            row[field] = field_value(record, field, languages)
    return row


def field_value(record: JsonRecord, field: str, languages: FileLanguages) -> JsonValue:
    """Return the value of a field, or None if the record has no value. Paths are returned in display form."""
    if field in record and field not in PATH_FIELDS:
        return record[field]
    if field == "lang":
        return languages.get(path_key(record))
    if field == "dir":
        return os.path.dirname(record_path(record)) or "."
    if field in PATH_FIELDS and (field in record or f"{field}_b64" in record):
        return record_path(record, field)
    return _field_defaults().get(str(record.get("kind")), {}).get(field)


@functools.cache
def _field_defaults() -> dict[str, dict[str, JsonValue]]:
    """Return the default value of each field, by kind of records. The value is None if the field has no default."""
    defaults_by_kind: dict[str, dict[str, JsonValue]] = {kind: {} for kind in RECORD_KINDS}
    for type_ in RECORD_TYPES:
        # `msgspec.structs.fields` is not used because it resolves type annotations, which is slow.
        names, defaults = type_.__struct_encode_fields__, type_.__struct_defaults__
        missing = (msgspec.NODEFAULT,) * (len(names) - len(defaults))
        for name, default in zip(names, missing + defaults, strict=True):
            is_set = default not in (msgspec.NODEFAULT, UNSET)
            defaults_by_kind[TAG_BY_TYPE[type_]][name] = (
                msgspec.json.decode(msgspec.json.encode(default)) if is_set else None
            )
    return defaults_by_kind
