"""What fields records have, and what each is of a record: also where it is not written, since it is the default."""

from __future__ import annotations

import functools
import os.path
from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec
from msgspec import UNSET

from codebatch.errors import StoreCorrupt
from codebatch.model.entry import display_path
from codebatch.model.record import KINDS, RECORD_TYPES, TAGS, Located
from codebatch.model.task import Json

JsonRecord = dict[str, Json]
R = TypeVar("R", bound=Located)
PathKey = tuple[Json, Json]
Languages = Mapping[PathKey, str]
"""The language of each file, by `path_key`."""
NO_LANGUAGES: Languages = {}

DERIVED = ("dir", "lang")
"""What every record has without it being written: the directory and the language of its file."""
PATHS = ("path", "other_path")
"""What stands under another name, its own and `_b64`, where it is no UTF-8."""


def cell_of(record: JsonRecord) -> str:
    """Return the place of a record in its notebook for people, empty outside of notebooks."""
    return f" (cell {record['cell']}, line {record['cell_line']})" if "cell" in record else ""


def record_path(record: JsonRecord, field: str = "path") -> str:
    """A record's path for people; the other one where `field` says so."""
    path_b64 = record.get(f"{field}_b64")
    if isinstance(path_b64, str):
        from base64 import b64decode

        return display_path(b64decode(path_b64))
    return str(record.get(field, ""))


def typed(record: JsonRecord, type_: type[R]) -> R:
    """A record as what it is. Raises StoreCorrupt where it is no such."""
    try:
        return msgspec.convert(record, type_)
    except msgspec.ValidationError as error:
        raise StoreCorrupt(f"a record is not a valid {type_.__name__.lower()}: {error}") from error


def path_key(record: JsonRecord) -> PathKey:
    """By what a record's file is told from all others."""
    return record.get("path"), record.get("path_b64")


def fields_of(kinds: Iterable[str]) -> tuple[str, ...]:
    """The fields of records of some kinds, `kind` and `path` first; each once."""
    defaults = _defaults()
    named = {field: None for kind in kinds for field in defaults[kind]}
    return tuple({"kind": None, "path": None, **named, **dict.fromkeys(DERIVED)})


def chosen(record: JsonRecord, fields: Iterable[str], languages: Languages) -> JsonRecord:
    """Some fields of a record alone. A path that is no UTF-8 is under `path_b64`, as in the record."""
    row: JsonRecord = {}
    for field in fields:
        encoded = f"{field}_b64"
        if field in PATHS and encoded in record:
            row[encoded] = record[encoded]
        else:
            row[field] = value_of(record, field, languages)
    return row


def value_of(record: JsonRecord, field: str, languages: Languages) -> Json:
    """The value of a field; None where the record has none. Paths are as people are shown them."""
    if field in record and field not in PATHS:
        return record[field]
    if field == "lang":
        return languages.get(path_key(record))
    if field == "dir":
        return os.path.dirname(record_path(record)) or "."
    if field in PATHS and (field in record or f"{field}_b64" in record):
        return record_path(record, field)
    return _defaults().get(str(record.get("kind")), {}).get(field)


@functools.cache
def _defaults() -> dict[str, dict[str, Json]]:
    """What each field is where a line does not have it, by kind."""
    found: dict[str, dict[str, Json]] = {kind: {} for kind in KINDS}
    for type_ in RECORD_TYPES:
        names, defaults = type_.__struct_encode_fields__, type_.__struct_defaults__  # The types of fields cost 5 ms.
        without = (msgspec.NODEFAULT,) * (len(names) - len(defaults))
        for name, default in zip(names, without + defaults, strict=True):
            is_set = default not in (msgspec.NODEFAULT, UNSET)
            found[TAGS[type_]][name] = msgspec.json.decode(msgspec.json.encode(default)) if is_set else None
    return found
