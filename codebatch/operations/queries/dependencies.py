"""Queries for dependencies between the files of a batch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.entry import display_path
from codebatch.operations.queries.batch_query import Answer, BatchQuery, find_item
from codebatch.operations.queries.impact import Impact
from codebatch.query.answers.dependencies import BatchImports, Cycle, FileImport, find_cycles, tasks_for_dependencies
from codebatch.query.answers.dependencies import find_dependents as dependents_of
from codebatch.query.answers.import_rules import LANGUAGES_WITH_IMPLICIT_IMPORTS, UNRESOLVED_LANGUAGES
from codebatch.query.completeness import tasks_completeness
from codebatch.query.filters.arguments import refuse_numbers_below_one
from codebatch.query.filters.paths import PathFilter, PathPatterns
from codebatch.query.sources.records import BatchRecords


def find_impact(
    question: BatchQuery, path: str, depth: int | None = None, within: PathPatterns = "", *, is_exact: bool = False
) -> Answer[Impact]:
    """Return the dependents of the file that `path` names.

    With `depth`, only dependents at most this number of import steps away are returned. With `within`, only matching
    files are returned. With `is_exact`, only imports with the resolution `exact` count. If other files may use the file
    without an import, the answer is incomplete. Raises InvalidInput or StoreCorrupt.
    """
    refuse_numbers_below_one(depth=depth)
    records = question.records
    name, item = find_item(records, path, question.note)
    try:
        text = name.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{display_path(name)} is not valid UTF-8; imports that refer to such a path are not resolved"
        ) from error
    importers_of = BatchImports(records, is_exact=is_exact).importers_of
    dependents = dependents_of(importers_of, text, depth)
    answer_completeness = tasks_completeness(
        records, tasks_for_dependencies(records), lacks_files=bool(question.batch.about.paths)
    )
    is_wanted = PathFilter(within).matches
    wanted = [dependent for dependent in dependents if is_wanted(os.fsencode(dependent.path))]
    language = next((file.lang for file in records.files if file.path_bytes == name), "")
    coverage = None
    if not wanted and answer_completeness.done == answer_completeness.planned:
        names = tuple(_defined_names(records, item)) if language in LANGUAGES_WITH_IMPLICIT_IMPORTS else ()
        coverage = question.read_coverage((*import_words(name), *names), is_wanted=is_wanted)
    if language in UNRESOLVED_LANGUAGES:
        unfollowed = f"uses of {UNRESOLVED_LANGUAGES[language]} files are not resolved; see: codebatch references NAME"
        answer_completeness = msgspec.structs.replace(answer_completeness, unfollowed=unfollowed)
    return Answer(
        question=question,
        result=Impact(path=name, dependents=wanted),
        completeness=answer_completeness,
        coverage=coverage,
    )


def _defined_names(records: BatchRecords, item: int) -> Iterator[str]:
    """Yield names that a file defines in its outermost scope. Other files may use them without an import."""
    symbols = [record for record in records.item_records("symbols", item) or () if record["kind"] == "symbol"]
    namespaces = {symbol["qualified"] for symbol in symbols if symbol["symbol_type"] in _NAMESPACE_TYPES}
    names = (
        str(symbol["name"])
        for symbol in symbols
        if symbol["symbol_type"] not in _IGNORED_TYPES and symbol.get("scope", "") in {"", *namespaces}
    )
    yield from islice(dict.fromkeys(names), _DEFINED_NAMES_MAX)


def import_words(path: bytes) -> tuple[str, ...]:
    """Return the words with which other files name a file if they import it: the file name, without its extension.

    A directory is imported by its own name, so for files such as `__init__.py`, the name of the directory is returned.
    """
    directory, _, file = path.decode().rpartition("/")
    stem = os.path.splitext(file)[0].removesuffix(".d")
    if stem in _NAMES_OF_DIRECTORIES and directory:
        stem = directory.rpartition("/")[2]
    return (stem.strip(".") or file,)


_NAMESPACE_TYPES = frozenset({"module", "namespace"})
_IGNORED_TYPES = _NAMESPACE_TYPES | {"import"}
_DEFINED_NAMES_MAX = 20
_NAMES_OF_DIRECTORIES = frozenset({"__init__", "index", "mod"})
"""Names of files that are imported by the name of their directory."""


def find_imports(question: BatchQuery, path: PathPatterns = "") -> Answer[list[FileImport]]:
    """Return imports between files, sorted by path. With `path`, only imports from or to a matching file.

    Raises InvalidInput or StoreCorrupt.
    """
    is_requested = PathFilter(path).matches
    matching_imports = [
        file_import
        for file_import in BatchImports(question.records)
        if not path or is_requested(os.fsencode(file_import.source)) or is_requested(os.fsencode(file_import.target))
    ]
    answer_completeness = tasks_completeness(question.records, tasks_for_dependencies(question.records))
    return Answer(question=question, result=matching_imports, completeness=answer_completeness)


def find_import_cycles(
    question: BatchQuery, path: PathPatterns = "", *, everything: bool = False
) -> Answer[list[Cycle]]:
    """Return import cycles, smallest first. With `path`, return only cycles with a matching file.

    `everything` includes two more kinds of cycles: those that consist only of tests, vendored and generated files, and
    those through imports that are not executed while a file is loaded. Raises InvalidInput or StoreCorrupt.
    """
    is_requested = PathFilter(path).matches
    matching_cycles = [
        cycle
        for cycle in (list_all_cycles(question) if everything else list_relevant_cycles(question))
        if not path or any(is_requested(os.fsencode(file)) for file in cycle.files)
    ]
    answer_completeness = tasks_completeness(
        question.records, tasks_for_dependencies(question.records), lacks_files=bool(question.batch.about.paths)
    )
    return Answer(question=question, result=matching_cycles, completeness=answer_completeness)


def list_all_cycles(question: BatchQuery) -> list[Cycle]:
    """Return all import cycles of a batch. Raises InvalidInput or StoreCorrupt."""
    return find_cycles(question.records, everything=True)


def list_relevant_cycles(question: BatchQuery) -> list[Cycle]:
    """Return the import cycles of a batch, without cycles that consist only of tests, vendored and generated files.

    If the project consists only of such files, all cycles are returned. Raises InvalidInput or StoreCorrupt.
    """
    cycles = find_cycles(question.records)
    secondary = question.secondary_files
    return [
        cycle
        for cycle in cycles
        if not all(secondary.category_of(os.fsencode(path)) is not None for path in cycle.files)
    ]
