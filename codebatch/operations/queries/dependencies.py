"""Queries for imports between the files of a batch."""

from __future__ import annotations

import os

from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.query.answers.dependencies import BatchImports, Cycle, FileImport, find_cycles, tasks_for_dependencies
from codebatch.query.completeness import tasks_completeness
from codebatch.query.filters.paths import PathFilter, PathPatterns


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
        for cycle in (find_cycles(question.records, everything=True) if everything else list_relevant_cycles(question))
        if not path or any(is_requested(os.fsencode(file)) for file in cycle.files)
    ]
    answer_completeness = tasks_completeness(
        question.records, tasks_for_dependencies(question.records), lacks_files=bool(question.batch.about.paths)
    )
    return Answer(question=question, result=matching_cycles, completeness=answer_completeness)


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
