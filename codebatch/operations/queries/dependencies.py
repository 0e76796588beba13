"""Queries for dependencies between the files of a batch."""

from __future__ import annotations

import os

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.entry import display_path
from codebatch.operations.queries.batch_query import Answer, BatchQuery, find_item
from codebatch.operations.queries.impact import Impact
from codebatch.operations.queries.mentions import find_mentions
from codebatch.query.answers.dependencies import BatchImports, Cycle, FileImport, find_cycles, tasks_for_dependencies
from codebatch.query.answers.dependencies import find_dependents as dependents_of
from codebatch.query.completeness import tasks_completeness
from codebatch.query.filters.arguments import refuse_numbers_below_one
from codebatch.query.filters.paths import PathFilter, PathPatterns
from codebatch.query.sources.parsed_files import file_states


def find_impact(question: BatchQuery, path: str, depth: int | None = None) -> Answer[Impact]:
    """Return the dependents of the file that `path` names.

    With `depth`, only dependents at most this number of import steps away are returned. If other files may use the file
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
    importers_of = BatchImports(records).importers_of
    dependents = dependents_of(importers_of, text, depth)
    answer_completeness = tasks_completeness(
        records, tasks_for_dependencies(records), lacks_files=bool(question.batch.about.paths)
    )
    mentions = None
    if answer_completeness.is_complete:
        known = dependents if depth is None else dependents_of(importers_of, text)
        mentions = find_mentions(question, name, item, {os.fsencode(dependent.path) for dependent in known})
        if mentions is not None:
            answer_completeness = msgspec.structs.replace(answer_completeness, unfollowed=mentions.note)
    return Answer(
        question=question,
        result=Impact(path=name, dependents=dependents, mentions=mentions),
        completeness=answer_completeness,
    )


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
    if not cycles or not file_states(question.records.files).plain:
        return cycles
    secondary = question.non_production_files
    return [
        cycle
        for cycle in cycles
        if not all(secondary.category_of(os.fsencode(path)) is not None for path in cycle.files)
    ]
