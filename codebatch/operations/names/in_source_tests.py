"""Source files that have tests in them, besides the code that the tests test."""

from __future__ import annotations

import re
from collections.abc import Iterable

from codebatch.errors import ObjectMissing
from codebatch.model.entry import Entry, display_path
from codebatch.model.text.quantities import count_text
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.query.answers.search_coverage import Evidence, unsearched_evidence

_FILES_READ_MAX = 100
_PLACES_SHOWN = 10
_RUST_TEST = re.compile(rb"#\[(?:[\w:]+::)?test\b|\bcfg\(test\)")
_JAVASCRIPT_TEST = re.compile(rb"\bimport\.meta\.vitest\b")
_TESTS = {b".rs": _RUST_TEST, b".ts": _JAVASCRIPT_TEST, b".js": _JAVASCRIPT_TEST}


def in_source_tests(question: BatchQuery, paths: Iterable[bytes]) -> tuple[Evidence, ...]:
    """Return the evidence that some files have tests in them. The names of these files are not those of tests."""
    possible = [path for path in dict.fromkeys(paths) if path[-3:] in _TESTS]
    known = possible[:_FILES_READ_MAX]
    more = unsearched_evidence(len(possible) - len(known), "more source file", "more source files")
    items = question.records.find_items(known)
    found = [path for path in known if path in items and _has_tests(question, items[path])]
    if not found:
        return more
    text = count_text(len(found), "source file with tests uses it", "source files with tests use it")
    return (
        Evidence(kind="test", count=len(found), text=text, places=tuple(map(display_path, found[:_PLACES_SHOWN]))),
        *more,
    )


def _has_tests(question: BatchQuery, item: int) -> bool:
    entry = _entry(question, item)
    try:
        return _TESTS[entry.path[-3:]].search(question.records.read_object(entry)) is not None
    except ObjectMissing:
        return True


def _entry(question: BatchQuery, item: int) -> Entry:
    records = question.records
    if records.batch.about.paths:
        return records.items[item]
    (entry,) = records.snapshot.items_between(item, item + 1)
    return entry
