"""Where a name stands in the files of a batch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import cast

import msgspec

from codebatch.errors import InvalidInput, ObjectMissing, StoreCorrupt
from codebatch.model.entry import display_path, path_row
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.operations.queries.partial_files import note_partial_files
from codebatch.plugins.worker_services import load_question
from codebatch.query.completeness import Completeness
from codebatch.query.fields import JsonRecord
from codebatch.query.filters.arguments import refuse_text, refuse_unknown
from codebatch.query.filters.filters import RecordFilter, path_bytes
from codebatch.query.filters.paths import PathFilter, Paths
from codebatch.query.sources.narrowing import lookups_of
from codebatch.query.sources.records import BatchRecords

_TASK = "symbols"
ROLES = ("definition", "import", "call", "reference")

Progress = Callable[[int, int], None]
"""Is told how many files are done, of how many."""


def ignore_progress(_: int, __: int) -> None:
    pass


def references(
    question: BatchQuery,
    name: str,
    *,
    roles: Collection[str] = (),
    path: Paths = "",
    progress: Progress = ignore_progress,
) -> Answer[list[JsonRecord]]:
    """Every place where a name stands, in some roles, all where none is named, in paths as a PathFilter has it.

    Each has `path` or `path_b64`, `name`, `line`, `column`, `role` and `scope`. Raises InvalidInput or StoreCorrupt.
    """
    if not name or any(character.isspace() for character in name):
        raise InvalidInput(f"{name!r} is not an identifier", hint="give an identifier without its scope")
    refuse_text(roles=roles)
    refuse_unknown("role", roles, ROLES)
    lost: list[bytes] = []
    found = [row for row in _found(question, name, path, lost, progress) if not roles or row["role"] in roles]
    notes = note_partial_files(question, name, "places", PathFilter(path).matches)
    files = len(question.records.items)
    whole = Completeness(planned=files, done=files, lost=len(lost))
    return Answer(question=question, found=found, whole=whole, notes=notes)


def _found(question: BatchQuery, name: str, path: Paths, lost: list[bytes], progress: Progress) -> Iterator[JsonRecord]:
    """The rows, file by file; of which files the content is not there is noted in `lost`."""
    find = load_question("references_in")
    records = question.records
    paths = PathFilter(path)
    known = _known_calls(question, name)
    for item, entry in enumerate(records.items):
        progress(item, len(records.items))
        if not paths.matches(entry.path):
            continue
        try:
            content = records.read_object(entry)
        except ObjectMissing as error:
            question.note(f"{display_path(entry.path)} skipped: {error.message}")
            lost.append(entry.path)
            continue
        answer = find(name, entry.path, content, records.plan.context_of(item), known.get(entry.path))
        for row in cast("Iterator[JsonRecord]", answer):
            yield {**path_row(entry.path), "name": name, **row}


class _Call(msgspec.Struct, frozen=True):
    """What of a `calls` edge is asked for."""

    line: int
    target: str
    source: str = ""


def _known_calls(question: BatchQuery, name: str) -> dict[bytes, list[tuple[int, str, str]]]:
    """By path the line, target and source of each call of a name, in files that define nothing of it.

    None where no index names the few records that tell it: then it is faster to look at the files alone.
    """
    records = question.records
    if _TASK not in records.task_names or name.endswith("*"):  # Which a filter takes for how a name begins.
        return {}
    calls = RecordFilter(kinds=("edge",), targets=(name,), where='edge_type == "calls"')
    known: dict[bytes, list[tuple[int, str, str]]] = {}
    try:
        for row in _indexed(records, calls) or ():
            known.setdefault(path_bytes(row), []).append(msgspec.structs.astuple(msgspec.convert(row, _Call)))
        defining = _indexed(records, RecordFilter(names=(name,))) if known else None
        if defining is None:
            return {}
        for row in defining:
            known.pop(path_bytes(row), None)
    except (StoreCorrupt, msgspec.ValidationError):  # To be said by who asks for records: the files say the same.
        return {}
    return known


def _indexed(records: BatchRecords, asked: RecordFilter) -> list[JsonRecord] | None:
    """The records that are asked for, None where an index does not know which hold them."""
    pieces = records.pieces(_TASK, asked, lookups_of(asked))
    if any(piece.frames is None for piece in pieces):
        return None
    return [record for piece in pieces for record in asked.iter_matching(records.read(piece))]
