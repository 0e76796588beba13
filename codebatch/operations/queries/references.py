"""Query for all occurrences of a name in the files of a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec

from codebatch.errors import InvalidInput, ObjectMissing, StoreCorrupt
from codebatch.model.entry import display_path, path_row
from codebatch.model.text.words import WordFinder, searched_word
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.operations.queries.name_answers import NameSearch, name_answer, use_evidence
from codebatch.plugins.worker_services import name_services
from codebatch.query.answers.spellings import Spellings
from codebatch.query.answers.unparsed_files import WordMatches
from codebatch.query.completeness import Completeness
from codebatch.query.fields import JsonRecord
from codebatch.query.filters.arguments import refuse_invalid_texts, refuse_unknown
from codebatch.query.filters.filters import RecordFilter, last_name, path_bytes
from codebatch.query.filters.paths import PathFilter, PathPatterns
from codebatch.query.sources.narrowing import index_lookups
from codebatch.query.sources.records import BatchRecords

_SYMBOLS_TASK = "symbols"
REFERENCE_ROLES = ("definition", "import", "call", "reference", "string")
_DEFAULT_ROLES = REFERENCE_ROLES[:-1]

SearchProgress = Callable[[int, int], None]
"""A callback with the number of files searched and the number of all files to search."""


def ignore_progress(_: int, __: int) -> None:
    pass


def find_references(
    question: BatchQuery,
    name: str,
    *,
    count_renamed: Callable[[BatchQuery, str], int] = lambda _, __: 0,
    roles: Collection[str] = (),
    path: PathPatterns = "",
    progress: SearchProgress = ignore_progress,
) -> Answer[list[JsonRecord]]:
    """Return every occurrence of a name in files that match `path`, by default in all roles but `string`.

    Each row has `path` or `path_b64`, `name`, `line`, `column`, `role` and `scope`. `count_renamed` counts uses under
    other names. Raises InvalidInput or StoreCorrupt.
    """
    if not name or any(character.isspace() for character in name):
        raise InvalidInput(f"{name!r} is not an identifier", hint="give one identifier without spaces")
    last = last_name(name)
    if last != name and last:
        raise InvalidInput(
            f"{name!r} is not a single identifier", hint=f"search for its last part: codebatch references {last}"
        )
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{name!r} is not valid UTF-8", hint="names of this kind cannot be searched") from error
    refuse_invalid_texts(roles=roles)
    refuse_unknown("role", roles, REFERENCE_ROLES)
    is_wanted = PathFilter(path).matches
    matches = WordMatches([], [])
    every = list(_iter_references(question, name, is_wanted, matches, progress))
    spellings = _other_spellings(question.records, name, every)
    for other in spellings:
        every += _iter_references(question, other, is_wanted, matches, progress)
    if spellings:
        every.sort(key=lambda row: (path_bytes(row), row["line"], row["column"]))
    rows = [row for row in every if row["role"] in (roles or _DEFAULT_ROLES)]
    others = Counter(
        str(row["role"])
        for row in every
        if row["role"] not in ("definition", *(roles or _DEFAULT_ROLES))
        and (row["role"] != "string" or last_name(row["scope"]) != name)  # A definition with its own name as a text.
    )
    is_empty = not rows or (all(row["role"] == "definition" for row in rows) and "definition" not in roles)
    if is_empty and every:
        others["renamed"] = count_renamed(question, name)
    search = NameSearch(
        name=name,
        word=searched_word(name),
        spellings=spellings,
        is_known=bool(every),
        evidence=tuple(use_evidence(name, +others, " or ".join(roles) or "reference")),
        covered=Counter(path_bytes(row) for row in every if row["role"] != "string"),
        is_wanted=is_wanted,
        matches=matches,
    )
    files = question.batch.about.items
    completeness = Completeness(planned=files, done=files, lost=len(matches.missing))
    return name_answer(question, rows, completeness, search, is_empty=is_empty)


def _other_spellings(records: BatchRecords, name: str, rows: Sequence[JsonRecord]) -> tuple[str, ...]:
    """Return the other spellings of a name, by the languages of the files that define it."""
    defining = {path_bytes(row) for row in rows if row["role"] == "definition"}
    if not defining:
        return Spellings(records).of_undefined(name)
    items = records.find_items(sorted(defining)).values() if "parse" in records.task_names else ()
    found = [record for item in items for record in records.item_records("parse", item) or ()]
    return Spellings(records).others(name, {str(record["lang"]) for record in found if record["kind"] == "file"})


def _iter_references(
    question: BatchQuery,
    name: str,
    is_wanted: Callable[[bytes], bool],
    matches: WordMatches,
    progress: SearchProgress,
) -> Iterator[JsonRecord]:
    """Yield the rows file by file. Only files that may contain the name are read.

    The paths of files that contain the name, and of files whose content is missing, are appended to `matches`.
    """
    records = question.records
    candidates = [(item, entry) for item, entry in records.items_with_name(name) if is_wanted(entry.path)]
    if not candidates:
        return
    find = name_services().references_in
    finder = WordFinder((searched_word(name),))
    known = _recorded_calls(question, name)
    for number, (item, entry) in enumerate(candidates):
        progress(number, len(candidates))
        try:
            content = records.read_object(entry)
        except ObjectMissing as error:
            question.note(f"{display_path(entry.path)} skipped: {error.message}")
            matches.missing.append(entry.path)
            continue
        if finder.is_in(content):
            matches.containing.append(entry.path)
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
