"""How the files of a batch depend on one another."""

from __future__ import annotations

import os

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.entry import display_path
from codebatch.operations.queries.batch_query import Answer, BatchQuery, find_item
from codebatch.operations.queries.impact import Impact
from codebatch.operations.queries.mentions import find_mentions
from codebatch.query.answers.dependencies import Cycle, FileImport, Imports, find_cycles, needed_tasks
from codebatch.query.answers.dependencies import impact as dependents_of
from codebatch.query.completeness import completeness
from codebatch.query.filters.arguments import refuse_below_one
from codebatch.query.filters.paths import PathFilter, Paths
from codebatch.query.sources.parsed_files import file_states


def impact(question: BatchQuery, path: str, depth: int | None = None) -> Answer[Impact]:
    """Return what depends on the file that a path names, in at most so many steps, in any number where none is given.

    Files that may use it without an import make the answer incomplete.

    Raises InvalidInput or StoreCorrupt.
    """
    refuse_below_one(depth=depth)
    records = question.records
    name, item = find_item(records, path, question.note)
    try:
        text = name.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{display_path(name)} is not valid UTF-8; imports of files with such paths are not resolved"
        ) from error
    importers_of = Imports(records).importers_of
    found = dependents_of(importers_of, text, depth)
    whole = completeness(records, needed_tasks(records), lacks_files=bool(question.batch.about.paths))
    mentions = None
    if whole.is_complete:
        known = found if depth is None else dependents_of(importers_of, text)
        mentions = find_mentions(question, name, item, {os.fsencode(each.path) for each in known})
        if mentions is not None:
            whole = msgspec.structs.replace(whole, unfollowed=mentions.told)
    return Answer(question=question, found=Impact(path=name, dependents=found, mentions=mentions), whole=whole)


def imports(question: BatchQuery, path: Paths = "") -> Answer[list[FileImport]]:
    """Return which file imports which, by path; only imports by or of a file that is asked for.

    Raises InvalidInput or StoreCorrupt.
    """
    is_asked = PathFilter(path).matches
    found = [
        each
        for each in Imports(question.records)
        if not path or is_asked(os.fsencode(each.source)) or is_asked(os.fsencode(each.target))
    ]
    whole = completeness(question.records, needed_tasks(question.records))
    return Answer(question=question, found=found, whole=whole)


def import_cycles(question: BatchQuery, path: Paths = "", *, everything: bool = False) -> Answer[list[Cycle]]:
    """Return files that import one another, fewest files first; only with a file that is asked for.

    With `everything` also cycles of tests, vendored and generated files alone, and those that only imports close which
    no loading of a file executes. Raises InvalidInput or StoreCorrupt.
    """
    is_asked = PathFilter(path).matches
    found = [
        each
        for each in (every_cycle(question) if everything else relevant_cycles(question))
        if not path or any(is_asked(os.fsencode(file)) for file in each.files)
    ]
    whole = completeness(question.records, needed_tasks(question.records), lacks_files=bool(question.batch.about.paths))
    return Answer(question=question, found=found, whole=whole)


def every_cycle(question: BatchQuery) -> list[Cycle]:
    """Return the cycles of all imports of a batch. Raises InvalidInput or StoreCorrupt."""
    return find_cycles(question.records, everything=True)


def relevant_cycles(question: BatchQuery) -> list[Cycle]:
    """Return the cycles of a batch except those of tests, vendored and generated files alone.

    In a batch of nothing else no file stands apart. Raises InvalidInput or StoreCorrupt.
    """
    found = find_cycles(question.records, question.find_numbers())
    if not found or not file_states(question.records.files).plain:
        return found
    apart = question.apart
    return [each for each in found if not all(apart.of(os.fsencode(path)) is not None for path in each.files)]
