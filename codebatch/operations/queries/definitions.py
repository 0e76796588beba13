"""Queries for a name: its definitions and its callers. Names are compared as text; scopes are not resolved."""

from __future__ import annotations

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.task import JsonValue
from codebatch.operations.queries import records
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.operations.queries.partial_files import note_partial_file, note_partial_files
from codebatch.operations.queries.records import FileRecords
from codebatch.query.fields import NO_LANGUAGES, JsonRecord, path_key, select_fields
from codebatch.query.filters.filters import RecordFilter, last_name


class Caller(msgspec.Struct, frozen=True):
    """A function that calls a name, with the location of its first call and the number of its calls.

    `scope` is empty for calls outside of functions.
    """

    call: JsonRecord
    calls: int

    @property
    def row(self) -> JsonRecord:
        """The caller as a dictionary. Its keys are `path` or `path_b64`, `scope`, `line`, `target` and `calls`."""
        place = select_fields(self.call, ("path",), NO_LANGUAGES)
        call_fields = {"scope": self.call["source"], "line": self.call["line"], "target": self.call["target"]}
        return {**place, **call_fields, "calls": self.calls}


def find_definitions(question: BatchQuery, name: str) -> Answer[list[JsonRecord]]:
    """Return the symbols with a name, by path and location. Imports are left out.

    The name may be unqualified, or partly or fully qualified. Raises InvalidInput or StoreCorrupt.
    """
    record_filter = RecordFilter(
        kinds=("symbol",), names=(_last_name_component(name), name), where="symbol_type != 'import'"
    )
    answer = records.search_records(question, record_filter)
    matches = [record for record in answer.result if record["name"] == name or _ends_with(record["qualified"], name)]
    notes = note_partial_files(question, _last_name_component(name), "definitions")
    return Answer(question=question, result=matches, completeness=answer.completeness, notes=notes)


def find_callers(question: BatchQuery, name: str) -> Answer[list[Caller]]:
    """Return the scopes that call a name, by path and first call.

    The name may be unqualified, or partly or fully qualified. Raises InvalidInput or StoreCorrupt.
    """
    record_filter = RecordFilter(kinds=("edge",), targets=(_last_name_component(name),), where="edge_type == 'calls'")
    answer = records.search_records(question, record_filter)
    by_scope: dict[tuple[JsonValue, ...], Caller] = {}
    for call in answer.result:
        if _ends_with(call["target"], name):
            scope = (*path_key(call), call["source"])
            first = by_scope.get(scope)
            by_scope[scope] = Caller(first.call if first else call, first.calls + 1 if first else 1)
    notes = note_partial_files(question, _last_name_component(name), "calls")
    return Answer(question=question, result=list(by_scope.values()), completeness=answer.completeness, notes=notes)


def read_outline(question: BatchQuery, path: str) -> Answer[FileRecords]:
    """Return the definitions of the file that `path` names in source order, without imports.

    Raises InvalidInput or StoreCorrupt.
    """
    answer = records.inspect_file(question, path, kinds=("symbol",))
    notes = note_partial_file(question, answer.result.path, answer.result.item)
    definitions = [record for record in answer.result.records if record["symbol_type"] != "import"]
    result = msgspec.structs.replace(answer.result, records=definitions)
    return Answer(question=question, result=result, completeness=answer.completeness, notes=notes)


def _last_name_component(name: str) -> str:
    """Return the last component of a qualified name. Raises InvalidInput if the text is not a name."""
    last = last_name(name)
    if not isinstance(last, str) or not last or any(character.isspace() or character == "*" for character in name):
        raise InvalidInput(f"{name!r} is not a name", hint="give a name such as f or Class.method")
    return last


def _ends_with(qualified: JsonValue, name: str) -> bool:
    ends = tuple(f"{before}{name}" for before in (".", ":", "/", "\\", "->"))
    return isinstance(qualified, str) and (qualified == name or qualified.endswith(ends))
