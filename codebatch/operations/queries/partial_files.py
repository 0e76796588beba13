"""Notes about partially parsed files. A note warns that results from these files may be missing in an answer."""

from __future__ import annotations

import re
from collections.abc import Iterable

from codebatch.errors import ObjectMissing
from codebatch.model.entry import Entry, display_path
from codebatch.model.text.quantities import count_text
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.query.answers.unparsed_files import find_unparsed_files
from codebatch.query.sources.parsed_files import PARTIAL_PARSE_STATES
from codebatch.query.sources.records import BatchRecords

_PATHS_SHOWN_MAX = 3
# Maximum number of partially parsed files that are searched for a name. If there are more, the note has only their
# number.
_FILES_READ_MAX = 500


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


def note_partial_files(question: BatchQuery, name: str) -> tuple[str, ...]:
    """Return a note, in a tuple, that names the partially parsed files that contain a name.

    Definitions may be missing in these files. If there are no such files, return an empty tuple. Raises StoreCorrupt.
    """
    reasons = find_unparsed_files(question.records, question.records.items_with_name(name))
    entries = [entry for entry, reason, _ in reasons if reason in PARTIAL_PARSE_STATES]
    if len(entries) > _FILES_READ_MAX:
        number = count_text(len(entries), "file")
        return _note_once(question, f"{number} are partially parsed: definitions of {name} may be missing there")
    word = re.compile(rb"(?<![A-Za-z0-9_])%s(?![A-Za-z0-9_])" % re.escape(name.encode()))
    matches = [path for path, content in _read_contents(question, entries) if word.search(content)]
    if not matches:
        return ()
    paths_text = ", ".join(map(display_path, matches[:_PATHS_SHOWN_MAX]))
    more = f" and {len(matches) - _PATHS_SHOWN_MAX:,} more" if len(matches) > _PATHS_SHOWN_MAX else ""
    verb = "is" if len(matches) == 1 else "are"
    note = f"{paths_text}{more} {verb} partially parsed: definitions of {name} may be missing there"
    return _note_once(question, note)


def _note_once(question: BatchQuery, note: str) -> tuple[str, ...]:
    question.note(note)
    return (note,)


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
