"""`find`: where in the files of a batch something is written that a query or a pattern says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import cast

import msgspec

from codebatch.errors import InvalidInput, ObjectMissing
from codebatch.model.analysis.search_result import Searched
from codebatch.model.entry import display_path, path_row
from codebatch.model.text.quantities import count_of
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.operations.queries.references import Progress
from codebatch.plugins.worker_services import load_question
from codebatch.query.completeness import Completeness
from codebatch.query.fields import NO_LANGUAGES, JsonRecord, path_key
from codebatch.query.filters.arguments import refuse_below_one
from codebatch.query.filters.paths import PathFilter, Paths
from codebatch.query.sources.records import BatchRecords
from codebatch.system.processes.forks import ForkFailure, map_forked

FORKED_FILES_MIN = 64
"""Files that are worth a process more."""
FOUND_MAX = 1_000_000
"""Rows of an answer, which are all in memory."""
_TOLD_MAX = 5
FILE_SECONDS_MAX = 30.0
"""Time that looking in one file may take by default, as of `run`."""


class CodeSearch(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked for: a query or a pattern, in files of a language.

    `limit`: so many rows are enough. `by_file`: each is a file with how many places it has. `file_seconds` is the time
    that one file may take: a regular expression of a query may take for ever.
    """

    language: str
    query: str | None = None
    pattern: str | None = None
    path: Paths = ""
    limit: int | None = None
    by_file: bool = False
    jobs: int = 1
    file_seconds: float = FILE_SECONDS_MAX


class _SearchNotes:
    """What is to be said besides the places: of which files they may not be all."""

    def __init__(self, question: BatchQuery) -> None:
        self._question = question
        self._unread: Counter[str] = Counter()
        self._with_errors = 0
        self.lost = 0

    def hear(self, path: bytes, searched: Searched) -> None:
        """What came of a file."""
        if searched.lost:
            self.lost += 1
            if self.lost <= _TOLD_MAX:
                self._question.note(f"{display_path(path)} skipped: {searched.lost}")
        if searched.unread:
            self._unread[searched.unread] += 1
        self._with_errors += searched.has_errors

    def tell(self, language: str) -> None:
        """Say it."""
        if self._unread:
            counts = ", ".join(f"{count:,} {why}" for why, count in sorted(self._unread.items()))
            self._question.note(f"{language} files not searched: {counts}")
        if self._with_errors:
            files = count_of(self._with_errors, "file")
            self._question.note(f"{files} with syntax errors: matches near the errors may be missing")


def find(question: BatchQuery, wanted: CodeSearch, progress: Progress) -> Answer[list[JsonRecord]]:
    """The places that are wanted, by path and position. Raises InvalidInput or StoreCorrupt."""
    refuse_below_one(limit=wanted.limit, jobs=wanted.jobs)
    if not wanted.file_seconds > 0:
        raise InvalidInput(f"`file_seconds` must be more than 0, not {wanted.file_seconds}")
    if (wanted.query is None) == (wanted.pattern is None):
        raise InvalidInput("give either a query or a pattern")
    kind, text = ("query", wanted.query) if wanted.pattern is None else ("pattern", wanted.pattern)
    language = cast("str", load_question("named_language")(wanted.language))
    looked_for = load_question("finder")(kind, text, language)
    find_in = load_question("find_in")
    records = question.records
    items = list(_items(records, language, wanted.path))
    entries, plan = records.items, records.plan

    def search(item: int) -> Searched:
        entry = entries[item]
        try:
            content = records.read_object(entry)
        except ObjectMissing as error:
            return Searched(lost=error.message)
        contexts = plan.context_of(item)
        return cast("Searched", find_in(looked_for, entry.path, content, contexts, wanted.by_file))

    told = _SearchNotes(question)
    found: list[JsonRecord] = []
    done, enough = 0, min(wanted.limit or FOUND_MAX, FOUND_MAX)
    jobs = min(wanted.jobs, max(len(items) // FORKED_FILES_MIN, 1))
    with map_forked(search, items, jobs, Searched, seconds=wanted.file_seconds) as answers:
        for item, answer in zip(items, answers, strict=False):
            path = entries[item].path
            searched = Searched(lost=answer.reason) if isinstance(answer, ForkFailure) else answer
            told.hear(path, searched)
            if wanted.by_file and searched.places:
                found.append({**path_row(path), "places": searched.places})
            found += ({**path_row(path), **row} for row in searched.rows)
            done += 1
            progress(done, len(items))
            if len(found) >= enough:
                question.note(f"stopped after {enough:,} matches; there may be more")
                break
    told.tell(language)
    whole = Completeness(planned=len(items), done=len(items), lost=told.lost)
    return Answer(question=question, found=found[:enough], whole=whole)


def _items(records: BatchRecords, language: str, path: Paths) -> Iterator[int]:
    """The files that are of a language, or may be, as far as that is known."""
    paths = PathFilter(path)
    languages = records.languages if "parse" in records.task_names else NO_LANGUAGES
    for item, entry in enumerate(records.items):
        if languages.get(path_key({**path_row(entry.path)}), language) == language and paths.matches(entry.path):
            yield item
