"""Source files that have tests in them, besides the code that the tests test."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from codebatch.errors import ObjectMissing
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import count_text
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.plugins.worker_services import fact_services
from codebatch.query.answers.search_coverage import Evidence, unsearched_evidence
from codebatch.query.sources.records import read_entry

_FILES_READ_MAX = 100
_PLACES_SHOWN = 10
_BRACE = re.compile(rb"[{}]")
TestScope = tuple[bytes, str, int]
"""A path, the qualified name of a definition, and a line in the definition."""


def find_test_scopes(question: BatchQuery, scopes: Iterable[TestScope]) -> list[TestScope]:
    """Return those of some scopes that are tests in source files, in their order.

    A test is a function with an attribute such as `#[test]`, code of a macro in a test module, or code in a block with
    tests.
    """
    scopes = list(scopes)
    facts_of = fact_services().path_facts
    paths = [path for path in dict.fromkeys(path for path, _, _ in scopes) if facts_of(path).test_block is not None]
    items = question.records.find_items(paths[:_FILES_READ_MAX])
    tests = {path: list(_test_lines(question, item)) for path, item in items.items()}
    return [
        (path, scope, line)
        for path, scope, line in scopes
        if any(line in lines and name in ("", re.split(r"::|\.", scope)[-1]) for name, lines in tests.get(path, ()))
    ]


def _test_lines(question: BatchQuery, item: int) -> Iterator[tuple[str, range]]:
    """Yield the names of test functions and modules in a file with their lines. A block of tests has no name."""
    entry = read_entry(question.records, item)
    try:
        content = question.records.read_object(entry)
    except ObjectMissing:
        return
    pattern = fact_services().path_facts(entry.path).test_block
    for match in () if pattern is None else pattern.finditer(content):
        name = next(filter(None, match.groups()), b"").decode("utf-8", "replace")
        first = content.count(b"\n", 0, match.end()) + 1
        yield name, range(first, first + content.count(b"\n", match.end(), _block_end(content, match.end())) + 1)


def _block_end(content: bytes, start: int) -> int:
    """Return the end of the first block after an offset. Braces in strings are counted too."""
    depth = 0
    for brace in _BRACE.finditer(content, start):
        depth += 1 if brace[0] == b"{" else -1
        if depth <= 0:
            return brace.end()
    return len(content)


def in_source_tests(question: BatchQuery, paths: Iterable[bytes]) -> tuple[Evidence, ...]:
    """Return the evidence that some files have tests in them. The names of these files are not those of tests."""
    facts_of = fact_services().path_facts
    possible = [path for path in dict.fromkeys(paths) if facts_of(path).test_mark is not None]
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
    entry = read_entry(question.records, item)
    try:
        pattern = fact_services().path_facts(entry.path).test_mark
        return pattern is not None and pattern.search(question.records.read_object(entry)) is not None
    except ObjectMissing:
        return True
