"""Queries for the definitions of a name, and for the definitions in a file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from codebatch.errors import InvalidInput
from codebatch.index.words import has_lower_words
from codebatch.model.task import JsonValue
from codebatch.operations.queries import records
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.operations.queries.partial_files import note_partial_file
from codebatch.operations.queries.records import FileRecords
from codebatch.query.answers.spellings import Spellings
from codebatch.query.fields import JsonRecord
from codebatch.query.filters.filters import RecordFilter, last_name, path_bytes

if TYPE_CHECKING:
    from codebatch.query.completeness import Completeness


_SEPARATOR = re.compile(r"\.|::|->|[/\\]")
# Variables, constants and fields are compared with case.
_NAMED_WITHOUT_CASE = "symbol_type not in ('constant', 'enum_member', 'field', 'import', 'variable')"


def find_definitions_only(question: BatchQuery, name: str) -> tuple[list[JsonRecord], Completeness]:
    """Like `find_definitions`, but without notes and coverage. Return the symbols and the completeness."""
    record_filter = RecordFilter(
        kinds=("symbol",), names=(last_name_component(name), name), where="symbol_type != 'import'"
    )
    answer = records.search_records(question, record_filter)
    named = list(answer.result)
    matches = [record for record in named if record["name"] == name or ends_with_name(record["qualified"], name)]
    if not matches:  # The name can be written with the separators of another language: `a::b` for `a.b`.
        parts = _SEPARATOR.split(name)
        split = ((record, _SEPARATOR.split(str(record["qualified"]))) for record in named)
        matches = [record for record, names in split if names[-len(parts) :] == parts]
    return matches or _find_other_spellings(question, name), answer.completeness


def _find_other_spellings(question: BatchQuery, name: str) -> list[JsonRecord]:
    """Return the symbols with another spelling of a name, in languages that compare names without case."""
    spellings = Spellings(question.records).of_undefined(last_name_component(name))
    if not spellings:
        return []
    record_filter = RecordFilter(kinds=("symbol",), names=spellings, where=_NAMED_WITHOUT_CASE)
    return [
        record
        for record in records.search_records(question, record_filter).result
        if has_lower_words(path_bytes(record)) and ends_with_name(str(record["qualified"]).lower(), name.lower())
    ]


def read_outline(question: BatchQuery, path: str) -> Answer[FileRecords]:
    """Return the definitions of the file that `path` names in source order, without imports.

    Raises InvalidInput or StoreCorrupt.
    """
    answer = records.inspect_file(question, path, kinds=("symbol",))
    notes = note_partial_file(question, answer.result.path, answer.result.item)
    definitions = [record for record in answer.result.records if record["symbol_type"] != "import"]
    result = msgspec.structs.replace(answer.result, records=definitions)
    return Answer(question=question, result=result, completeness=answer.completeness, notes=notes)


def last_name_component(name: str) -> str:
    """Return the last component of a qualified name. Raises InvalidInput if the text is not a name."""
    last = last_name(name)
    if not isinstance(last, str) or not last or any(character.isspace() or character == "*" for character in name):
        raise InvalidInput(f"{name!r} is not a name", hint="give a name such as f or Class.method")
    return last


def ends_with_name(qualified: JsonValue, name: str) -> bool:
    """Return whether a qualified name ends with a name as a whole: `a.b.c` ends with `b.c`, but not with `c.c`."""
    ends = tuple(f"{before}{name}" for before in (".", ":", "/", "\\", "->"))
    return isinstance(qualified, str) and (qualified == name or qualified.endswith(ends))
