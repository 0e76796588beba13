"""Notes about partially parsed files. A note warns that results from these files may be missing in an answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from codebatch.errors import ObjectMissing
from codebatch.model.entry import Entry, display_path
from codebatch.model.text.quantities import count_text
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.query.sources.parsed_files import PARTIAL_PARSE_STATES
from codebatch.query.sources.records import BatchRecords

_PATHS_SHOWN_MAX = 3
# Maximum number of partially parsed files that are searched for a name. If there are more, the note has only their
# number.
_FILES_READ_MAX = 500
# Maximum number of files whose records are read one by one. For more files, all records are read.
_RECORDS_READ_MAX = 20


def note_partial_file(question: BatchQuery, path: bytes, item: int) -> tuple[str, ...]:
    """If a file is partially parsed, return a note about this in a tuple. Otherwise, return an empty tuple.

    Raises StoreCorrupt.
    """
    records = question.records
    if "parse" not in records.task_names:
        return ()
    if not _is_partially_parsed(records, item):
        return ()
    return _note_once(question, f"{display_path(path)} is partially parsed: definitions may be missing")


def note_partial_files(
    question: BatchQuery, name: str, missing: str, is_wanted: Callable[[bytes], bool] = lambda _: True
) -> tuple[str, ...]:
    """Return a note, in a tuple, that names the partially parsed files that contain a name.

    The answer may lack results in these files. `missing` names these results, for example "calls". `is_wanted`
    restricts the files by path. If there are no such files, return an empty tuple. Raises StoreCorrupt.
    """
    entries = _partial_entries(question, name, is_wanted)
    if len(entries) > _FILES_READ_MAX:
        number = count_text(len(entries), "file")
        return _note_once(question, f"{number} are partially parsed: {missing} of {name} may be missing there")
    word = re.compile(rb"(?<![A-Za-z0-9_])%s(?![A-Za-z0-9_])" % re.escape(name.encode()))
    matches = [path for path, content in _read_contents(question, entries) if word.search(content)]
    if not matches:
        return ()
    paths_text = ", ".join(map(display_path, matches[:_PATHS_SHOWN_MAX]))
    more = f" and {len(matches) - _PATHS_SHOWN_MAX:,} more" if len(matches) > _PATHS_SHOWN_MAX else ""
    verb = "is" if len(matches) == 1 else "are"
    return _note_once(question, f"{paths_text}{more} {verb} partially parsed: {missing} of {name} may be missing there")


def _note_once(question: BatchQuery, note: str) -> tuple[str, ...]:
    question.note(note)
    return (note,)


def _partial_entries(question: BatchQuery, name: str, is_wanted: Callable[[bytes], bool]) -> list[Entry]:
    """Return the partially parsed files that may contain a name, by path."""
    records = question.records
    candidates = [(item, entry) for item, entry in records.items_with_name(name) if is_wanted(entry.path)]
    if len(candidates) <= _RECORDS_READ_MAX and "parse" in records.task_names:
        return [entry for item, entry in candidates if _is_partially_parsed(records, item)]
    paths = {file.path_bytes for file in records.files if file.parse in PARTIAL_PARSE_STATES}
    return sorted((entry for _, entry in candidates if entry.path in paths), key=lambda entry: entry.path)


def _is_partially_parsed(records: BatchRecords, item: int) -> bool:
    states = (record.get("parse") for record in records.item_records("parse", item) or ())
    return any(state in PARTIAL_PARSE_STATES for state in states)


def _read_contents(question: BatchQuery, entries: Iterable[Entry]) -> list[tuple[bytes, bytes]]:
    contents = []
    for entry in entries:
        try:
            contents.append((entry.path, question.records.read_object(entry)))
        except ObjectMissing:
            question.note(f"{display_path(entry.path)} is partially parsed, and its content is missing from the store")
    return contents
