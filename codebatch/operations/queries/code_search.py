"""Search for a tree-sitter query or a pattern in the files of a batch (`codebatch find`)."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Mapping

import msgspec

from codebatch.errors import InvalidInput, ObjectMissing
from codebatch.model.analysis.language_groups import LANGUAGE_VARIANTS
from codebatch.model.analysis.search_result import FileSearchResult
from codebatch.model.entry import display_path, path_row
from codebatch.model.text.quantities import count_text
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.operations.queries.references import SearchProgress
from codebatch.plugins.worker_services import fact_services, language_services
from codebatch.query.completeness import Completeness
from codebatch.query.fields import NO_LANGUAGES, JsonRecord, path_key
from codebatch.query.filters.arguments import refuse_numbers_below_one
from codebatch.query.filters.paths import PathFilter, PathPatterns
from codebatch.query.sources.records import BatchRecords
from codebatch.system.processes.forks import ForkFailure, map_forked

FORKED_FILES_MIN = 64
"""Number of files for each search process: another process is started only for this many additional files."""
MATCHES_MAX = 1_000_000
"""Maximum number of rows of an answer. They are kept in memory."""
_SKIPS_NOTED_MAX = 5
FILE_SECONDS_MAX = 30.0
"""Default timeout in seconds for the search in one file, as in `run`."""


class CodeSearch(msgspec.Struct, frozen=True, kw_only=True):
    """A search with a query or a pattern in the files of a language.

    At most `limit` rows are returned. With `by_file`, a row is a file with its number of matches. `file_seconds` is the
    timeout for one file; it is needed because a regular expression in a query can take unbounded time.
    """

    language: str
    query: str | None = None
    pattern: str | None = None
    path: PathPatterns = ""
    limit: int | None = None
    by_file: bool = False
    jobs: int = 1
    file_seconds: float = FILE_SECONDS_MAX


class _SearchNotes:
    """A collector of notes about files whose matches may be incomplete."""

    def __init__(self, question: BatchQuery) -> None:
        self._question = question
        self._unread: Counter[str] = Counter()
        self._with_errors = 0
        self.lost = 0

    def add(self, path: bytes, searched: FileSearchResult) -> None:
        """Record the search result of a file. If the file was skipped, pass a note to the caller at once."""
        if searched.lost:
            self.lost += 1
            if self.lost <= _SKIPS_NOTED_MAX:
                self._question.note(f"{display_path(path)} skipped: {searched.lost}")
        if searched.unread:
            self._unread[searched.unread] += 1
        self._with_errors += searched.has_errors

    def note_all(self, language: str) -> None:
        """Pass the summary notes to the caller."""
        if self._unread:
            counts = ", ".join(f"{count:,} {why}" for why, count in sorted(self._unread.items()))
            self._question.note(f"{language} files not searched: {counts}")
        if self._with_errors:
            files = count_text(self._with_errors, "file")
            self._question.note(f"syntax errors in {files}: matches near the errors may be missing")


def find_code(question: BatchQuery, search_options: CodeSearch, progress: SearchProgress) -> Answer[list[JsonRecord]]:
    """Return the matches of a search, sorted by path and position. Raises InvalidInput or StoreCorrupt."""
    refuse_numbers_below_one(limit=search_options.limit, jobs=search_options.jobs)
    if not search_options.file_seconds > 0:
        raise InvalidInput(f"`file_seconds` must be more than 0, not {search_options.file_seconds}")
    if (search_options.query is None) == (search_options.pattern is None):
        raise InvalidInput("give either a query or a pattern")
    kind = "query" if search_options.pattern is None else "pattern"
    text = search_options.query or search_options.pattern or ""
    services = language_services()
    language = services.resolve_language(search_options.language)
    finders = {language: services.make_finder(kind, text, language)}
    for variant in LANGUAGE_VARIANTS.get(language, ()):
        with contextlib.suppress(InvalidInput):
            finders[variant] = services.make_finder(kind, text, variant)
    records = question.records
    languages = _language_by_item(records, language, search_options.path)
    all_items = [item for item, name in languages.items() if name in finders]
    _note_other_languages(question, language, languages, finders, kind)
    candidates = {item for item, _ in records.items_with_name(*finders[language].identifiers)}
    items = [item for item in all_items if item in candidates]
    entries, plan = records.items, records.plan

    def search(item: int) -> FileSearchResult:
        entry = entries[item]
        try:
            content = records.read_object(entry)
        except ObjectMissing as error:
            return FileSearchResult(lost=error.message)
        contexts = plan.item_contexts(item)
        finder = finders[languages[item]]
        return services.find_in(finder, entry.path, content, contexts, search_options.by_file)

    notes = _SearchNotes(question)
    rows: list[JsonRecord] = []
    done, rows_max = 0, min(search_options.limit or MATCHES_MAX, MATCHES_MAX)
    jobs = min(search_options.jobs, max(len(items) // FORKED_FILES_MIN, 1))
    with map_forked(search, items, jobs, FileSearchResult, seconds=search_options.file_seconds) as answers:
        for item, answer in zip(items, answers, strict=False):
            path = entries[item].path
            searched = FileSearchResult(lost=answer.reason) if isinstance(answer, ForkFailure) else answer
            notes.add(path, searched)
            if search_options.by_file and searched.places:
                rows.append({**path_row(path), "places": searched.places})
            rows += ({**path_row(path), **row} for row in searched.rows)
            done += 1
            progress(done, len(items))
            if len(rows) >= rows_max:
                question.note(f"stopped after {rows_max:,} matches; there may be more")
                break
    notes.note_all(language)
    answer_completeness = Completeness(planned=len(all_items), done=len(all_items), lost=notes.lost)
    return Answer(question=question, result=rows[:rows_max], completeness=answer_completeness)


def _language_by_item(records: BatchRecords, language: str, path: PathPatterns) -> dict[int, str]:
    """Return the language of each file that matches `path`, by item number. If it is unknown, it is `language`."""
    paths = PathFilter(path)
    known = records.languages if "parse" in records.task_names else NO_LANGUAGES
    return {
        item: known.get(path_key({**path_row(entry.path)}), language)
        for item, entry in enumerate(records.items)
        if paths.matches(entry.path)
    }


def _note_other_languages(
    question: BatchQuery, language: str, languages: Mapping[int, str], searched: Collection[str], kind: str
) -> None:
    """Add a note about files that are not searched, although they belong to the language in another sense."""
    for variant in LANGUAGE_VARIANTS.get(language, ()):
        number = sum(name == variant for name in languages.values())
        if number and variant not in searched:
            files = f"{number:,} {variant} {'file is' if number == 1 else 'files are'}"
            question.note(f"{files} not searched: the {kind} is not valid in {variant}")
    entries, family = question.records.items, fact_services().language_family
    headers = Counter(
        other
        for item, other in languages.items()
        if other != language and family(other) == family(language) and entries[item].path.lower().endswith(b".h")
    )
    for other, number in headers.items():
        files = f"{number:,} {'header is' if number == 1 else 'headers are'}"
        question.note(f"{files} not searched, because files near them are in {other}: search with -l {other}")
