"""Query for all occurrences of a name in the files of a batch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import msgspec

from codebatch.errors import InvalidInput, ObjectMissing, StoreCorrupt
from codebatch.model.entry import display_path, path_row
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.operations.queries.partial_files import note_partial_files
from codebatch.plugins.worker_services import language_services
from codebatch.query.completeness import Completeness
from codebatch.query.fields import JsonRecord
from codebatch.query.filters.arguments import refuse_invalid_texts, refuse_unknown
from codebatch.query.filters.filters import RecordFilter, path_bytes
from codebatch.query.filters.paths import PathFilter, PathPatterns
from codebatch.query.sources.narrowing import index_lookups
from codebatch.query.sources.records import BatchRecords

_SYMBOLS_TASK = "symbols"
REFERENCE_ROLES = ("definition", "import", "call", "reference")

SearchProgress = Callable[[int, int], None]
"""A callback with the number of files searched and the number of all files."""


def ignore_progress(_: int, __: int) -> None:
    pass


def find_references(
    question: BatchQuery,
    name: str,
    *,
    roles: Collection[str] = (),
    path: PathPatterns = "",
    progress: SearchProgress = ignore_progress,
) -> Answer[list[JsonRecord]]:
    """Return every occurrence of a name in files that match `path`, by default in all roles.

    Each row has `path` or `path_b64`, `name`, `line`, `column`, `role` and `scope`. Raises InvalidInput or
    StoreCorrupt.
    """
    if not name or any(character.isspace() for character in name):
        raise InvalidInput(f"{name!r} is not an identifier", hint="give one identifier without spaces")
    refuse_invalid_texts(roles=roles)
    refuse_unknown("role", roles, REFERENCE_ROLES)
    missing: list[bytes] = []
    rows = [
        row for row in _iter_references(question, name, path, missing, progress) if not roles or row["role"] in roles
    ]
    notes = note_partial_files(question, name, "places", PathFilter(path).matches)
    files = len(question.records.items)
    answer_completeness = Completeness(planned=files, done=files, lost=len(missing))
    return Answer(question=question, result=rows, completeness=answer_completeness, notes=notes)


def _iter_references(
    question: BatchQuery, name: str, path: PathPatterns, missing: list[bytes], progress: SearchProgress
) -> Iterator[JsonRecord]:
    """Yield the rows file by file. Paths of files whose content is missing are appended to `missing`."""
    find = language_services().references_in
    records = question.records
    paths = PathFilter(path)
    known = _recorded_calls(question, name)
    for item, entry in enumerate(records.items):
        progress(item, len(records.items))
        if not paths.matches(entry.path):
            continue
        try:
            content = records.read_object(entry)
        except ObjectMissing as error:
            question.note(f"{display_path(entry.path)} skipped: {error.message}")
            missing.append(entry.path)
            continue
        for row in find(name, entry.path, content, records.plan.item_contexts(item), known.get(entry.path)):
            yield {**path_row(entry.path), "name": name, **row}


class _CallEdge(msgspec.Struct, frozen=True):
    """The needed fields of a `calls` edge."""

    line: int
    target: str
    source: str = ""


def _recorded_calls(question: BatchQuery, name: str) -> dict[bytes, list[tuple[int, str, str]]]:
    """Return the line, target and source of each recorded call of a name, by path.

    Files that define the name are left out. If the batch has no index, return an empty dict: searching the files is
    then faster than reading all records.
    """
    records = question.records
    if _SYMBOLS_TASK not in records.task_names or name.endswith("*"):  # In a filter, `*` would match any suffix.
        return {}
    calls = RecordFilter(kinds=("edge",), targets=(name,), where='edge_type == "calls"')
    known: dict[bytes, list[tuple[int, str, str]]] = {}
    try:
        for row in _read_indexed(records, calls) or ():
            known.setdefault(path_bytes(row), []).append(msgspec.structs.astuple(msgspec.convert(row, _CallEdge)))
        defining = _read_indexed(records, RecordFilter(names=(name,))) if known else None
        if defining is None:
            return {}
        for row in defining:
            known.pop(path_bytes(row), None)
    # Queries of records report this damage. Here, the files can be searched for the name instead.
    except (StoreCorrupt, msgspec.ValidationError):
        return {}
    return known


def _read_indexed(records: BatchRecords, record_filter: RecordFilter) -> list[JsonRecord] | None:
    """Return the records that pass a filter, read through the index. Return None if no index can locate them."""
    pieces = records.pieces(_SYMBOLS_TASK, record_filter, index_lookups(record_filter))
    if any(piece.frames is None for piece in pieces):
        return None
    return [record for piece in pieces for record in record_filter.iter_matching(records.read(piece))]
