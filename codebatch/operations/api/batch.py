"""The public class of an open batch. It has one method for each query (batch_query.py has the type of answers).

This module is as long as it is because each question has a documented method.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from codebatch.errors import BatchIncomplete
from codebatch.operations.api.name_queries import NameQueries
from codebatch.operations.api.record_queries import AnyAnswer
from codebatch.operations.queries.batch_query import Answer, BatchQuery, check_reference, open_batch_query

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from codebatch.model.entry import Entry
    from codebatch.model.record import Severity
    from codebatch.operations.changes.changed_files import ChangedFile
    from codebatch.operations.comparison.comparison import Comparison
    from codebatch.operations.hotspots.hotspots import HotspotBy, Hotspots
    from codebatch.operations.names.impact import Impact
    from codebatch.operations.queries.batches import BatchStatus
    from codebatch.operations.queries.duplicate_blocks import DuplicateBlock, DuplicateLocation
    from codebatch.operations.queries.duplicates import DuplicateBlocks
    from codebatch.operations.queries.file_overview import Overview
    from codebatch.operations.queries.findings import FindingsByRule
    from codebatch.operations.queries.records import FileContent, FileRecords
    from codebatch.operations.queries.references import SearchProgress
    from codebatch.operations.queries.search_volume import SearchVolume
    from codebatch.operations.queries.source_line import InspectedLine, SourceLine
    from codebatch.operations.queries.sql import SqlResult
    from codebatch.query.answers.dependencies import Cycle, FileImport
    from codebatch.query.answers.summary import Summary
    from codebatch.query.completeness import Completeness
    from codebatch.query.fields import JsonRecord
    from codebatch.query.filters.filters import RecordFilter
    from codebatch.query.filters.paths import PathPatterns
    from codebatch.query.filters.record_options import CommonFilters, OneOrMany, OutputFilters


class Batch(NameQueries):
    """An open batch. It gives access to its records, and answers questions about names, files or the whole batch.

    It has many methods: one for each kind of record, and one for each kind of question. They raise InvalidInput for an
    invalid request, StoreCorrupt if data is damaged, and BatchIncomplete if the answer would be incomplete. If the
    batch was opened with `partial`, incomplete answers are returned instead.

    Example:

        with codebatch.open() as store:
            batch = store.batch("latest")
            for symbol in batch.symbols(symbol_type=("class", "method")):
                print(symbol.path, symbol.line, symbol.qualified)
    """

    def __init__(self, question: BatchQuery, check_open: Callable[[], None], *, partial: bool) -> None:
        """Wrap a query of a batch. `check_open` raises InvalidInput if the store was closed."""
        self._question = question
        self._check_open = check_open
        self._is_partial = partial

    @property
    def question(self) -> BatchQuery:
        """The internal query object of the batch. Raises InvalidInput if the store was closed."""
        self._check_open()
        return self._question

    def check(self, answer: AnyAnswer) -> AnyAnswer:
        """Return an answer unchanged if it is complete.

        Raises BatchIncomplete if the answer is incomplete, unless the batch was opened with `partial`.
        """
        shortfall = None if self._is_partial else answer.shortfall
        if shortfall is not None:
            message = f"{shortfall.message}; to accept incomplete answers, open the batch with partial=True"
            raise BatchIncomplete(message, hint=shortfall.hint)
        return answer

    @property
    def id(self) -> str:
        """The ID of the batch."""
        return self._question.batch.id

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of the tasks of the batch, in order."""
        return self.question.records.task_names

    @property
    def completeness(self) -> Completeness:
        """The completeness of the batch."""
        from codebatch.query.completeness import tasks_completeness

        return tasks_completeness(self.question.records, self.question.records.task_names)

    @property
    def is_stale(self) -> bool | None:
        """Whether files have changed since the batch was made.

        None if this is unknown, or if the batch is not the latest one of its project.
        """
        return self.question.is_stale

    def status(self) -> BatchStatus:
        """Return the current state of the batch and of each task."""
        from codebatch.operations.queries.batches import read_batch_status

        return read_batch_status(self.question.store, self.question.batch)

    def summary(self, task: str | None = None) -> Answer[Summary]:
        """Return the number of files, lines and records. With `task`, only records of this task are counted."""
        from codebatch.operations.queries import records

        return self.check(records.summarise(self.question, task))

    def worst(self, limit: int) -> Answer[list[JsonRecord]]:
        """Return at most `limit` diagnostics, the most severe first.

        Each diagnostic is a dictionary, as `codebatch query diagnostics --json` prints it.
        """
        from codebatch.operations.queries import records

        return self.check(records.find_worst(self.question, limit))

    def errors(self, task: str | None = None) -> Answer[list[JsonRecord]]:
        """Return all failures with their evidence, then all diagnostics of severity `error`.

        Each failure or diagnostic is a dictionary, as `codebatch errors --json` prints it. With `task`, only results of
        this task are returned.
        """
        from codebatch.operations.queries import records

        return self.check(records.find_errors(self.question, task))

    def findings(
        self,
        *,
        severity: Severity | Sequence[Severity] | None = None,
        code: OneOrMany = None,
        tool: OneOrMany = None,
        **filters: Unpack[CommonFilters],
    ) -> Answer[FindingsByRule]:
        """Return findings grouped by rule, the most severe rules first.

        The filters are the same as in `diagnostics`. Hints are left out, unless `severity` selects them.
        """
        from codebatch.operations.queries.findings import find_findings
        from codebatch.query.filters.record_options import CommonFilters, make_filter

        record_filter = make_filter(
            filters, CommonFilters, {"kind": "diagnostic", "severity": severity, "code": code, "tool": tool}
        )
        return self.check(find_findings(self.question, record_filter, filters.get("task")))

    def top(
        self, by: str = "kind", *, limit: int | None = None, task: str | None = None
    ) -> Answer[list[tuple[str, int]]]:
        """Return the values of the field `by`, each with its number of records, most frequent first.

        Two values of `by` are not fields:

        - `dir`: return directories, each with its number of diagnostics.
        - `metric:NAME`: return the files or functions with the greatest values of the metric NAME, each with its value.

        At most `limit` rows are returned, by default all.
        """
        from codebatch.operations.queries import records

        return self.check(records.rank_values(self.question, by, limit=limit, task=task))

    def count_searched(self, kinds: Collection[str], task: str | None = None) -> SearchVolume:
        """Return how much a query searches: the number of records of some types, and the number of files.

        The number of files is None while the batch is running.
        """
        from codebatch.operations.queries.search_volume import count_searched

        return count_searched(self.question, kinds, task)

    def describe_codes(self, codes: Collection[str], task: str | None = None) -> Answer[dict[str, tuple[str, str]]]:
        """Return for each given rule ID its severity in this batch and the message of its first finding."""
        from codebatch.operations.queries import records

        return self.check(records.describe_codes(self.question, codes, task))

    def entries(
        self,
        limit: int | None = None,
        *,
        parse: OneOrMany = None,
        file_class: OneOrMany = None,
        path: PathPatterns = "",
        lang: OneOrMany = None,
    ) -> Answer[list[tuple[Entry, JsonRecord | None]]]:
        """Return the files of the batch in path order, each with its `file` record.

        The record is a dictionary, as `codebatch query files --json` prints it, or None if the file has not been parsed
        yet. `parse`, `file_class` and `lang` select files with these parse states, classes and languages. `path`
        selects files by path.
        """
        from codebatch.operations.queries import records
        from codebatch.query.filters.record_options import as_tuple

        states = () if parse is None else as_tuple("parse", parse)
        classes = () if file_class is None else as_tuple("file_class", file_class)
        languages = () if lang is None else as_tuple("lang", lang)
        return self.check(
            records.list_files(self.question, limit, parse=states, classes=classes, path=path, languages=languages)
        )

    def find_paths(self, path_arguments: Sequence[str]) -> tuple[str, ...]:
        """Convert files, directories and patterns to paths in the project, for use as `path` arguments.

        Files and directories are relative to the current directory or to the project.
        """
        from codebatch.operations.queries.path_arguments import find_paths

        return find_paths(self.question.records, path_arguments, self.question.note)

    def inspect(self, path: str, *, kind: OneOrMany = None, for_machines: bool = True) -> Answer[FileRecords]:
        """Return all records of a file. With `kind`, only records of these types are returned.

        If `for_machines` is False, fingerprints are left out, because they are only useful for programs.
        """
        from codebatch.operations.queries import records
        from codebatch.query.filters.filters import RecordFilter
        from codebatch.query.filters.record_options import KINDS_FOR_PEOPLE, as_tuple

        named = () if kind is None else as_tuple("kind", kind)
        displayed_kinds = () if for_machines else KINDS_FOR_PEOPLE
        return self.check(
            records.inspect_file(self.question, path, RecordFilter(kinds=named or displayed_kinds), kinds=named)
        )

    def overview(self, path: str) -> Answer[Overview]:
        """Return a summary of a file: its rank by complexity, its most complex functions, and its findings."""
        from codebatch.operations.queries.file_overview import read_overview

        return self.check(read_overview(self.question, path))

    def split_place(self, argument: str) -> tuple[str, int | None]:
        """Split `FILE:LINE` or `FILE:LINE:COLUMN` into a file and a line.

        If the batch has a file whose name is the whole text, the file is returned and the line is None.
        """
        from codebatch.operations.queries.source_line import split_place

        return split_place(self.question, argument)

    def inspect_line(self, path: str, line: int, *, kind: OneOrMany = None) -> Answer[InspectedLine]:
        """Return the definitions that enclose a line, and the records about the line.

        With `kind`, only records of these types are returned.
        """
        from codebatch.operations.queries.source_line import inspect_line
        from codebatch.query.filters.record_options import as_tuple

        kinds = () if kind is None else as_tuple("kind", kind)
        return self.check(inspect_line(self.question, path, line, kinds=kinds))

    def content(self, path: str) -> FileContent:
        """Return the content of a file as it was when the snapshot was taken."""
        from codebatch.operations.queries import records

        return records.read_content(self.question, path)

    def outline(self, path: str) -> Answer[FileRecords]:
        """Return the definitions of a file in source order, without imports."""
        from codebatch.operations.queries.definitions import read_outline

        return self.check(read_outline(self.question, path))

    def find(
        self,
        *,
        language: str,
        query: str | None = None,
        pattern: str | None = None,
        path: PathPatterns = "",
        limit: int | None = None,
        by_file: bool = False,
        jobs: int = 1,
        file_seconds: float = 30.0,
        progress: SearchProgress | None = None,
    ) -> Answer[list[JsonRecord]]:
        """Return the code that matches a tree-sitter query or a pattern (TASKS.md "Patterns"), in files of a language.

        Each row has `path` or `path_b64`, `line`, `column`, `end_line` and `end_column`. `source` is the first line of
        the match, and `captures` has the text of each capture.

        - `by_file`: return the number of matches of each file instead.
        - `limit`: the maximum number of matches, by default a million.
        - `jobs`: the number of processes that search.
        - `file_seconds`: the time limit per file. A file that exceeds the limit is skipped, and the answer is
          incomplete.
        - `progress`: called with two numbers, the files searched so far and all files.
        """
        from codebatch.operations.queries.code_search import CodeSearch, find_code
        from codebatch.operations.queries.references import ignore_progress

        search = CodeSearch(
            language=language,
            query=query,
            pattern=pattern,
            path=path,
            limit=limit,
            by_file=by_file,
            jobs=jobs,
            file_seconds=file_seconds,
        )
        return self.check(find_code(self.question, search, progress or ignore_progress))

    @contextlib.contextmanager
    def sql(self, statement: str) -> Iterator[Answer[SqlResult]]:
        """Run a SELECT statement over the records of the batch (SPEC.md "SQL"). DuckDB must be installed.

        Use this method in a `with` statement. The rows are available until the block ends.
        """
        from codebatch.operations.queries.sql import execute_sql

        with execute_sql(self.question, statement) as answer:
            yield self.check(answer)

    def hotspots(
        self,
        by: HotspotBy = "hotspot",
        *,
        files: bool = False,
        least: int | None = None,
        limit: int = 10,
        path: PathPatterns = "",
        lang: OneOrMany = None,
        everything: bool = False,
    ) -> Answer[Hotspots]:
        """Return the functions or files that are hardest to change, highest score first.

        - `limit`: the maximum number of rows.
        - `least`: the minimum of the metric that `by` selects, by default 10 for functions and 1 for files. For
          `hotspot`, this metric is cognitive complexity.
        - `everything`: include tests, vendored and generated code, and functions in partially parsed files. By default,
          they are only counted.
        """
        from codebatch.operations.hotspots.hotspots import find_hotspots
        from codebatch.query.filters.record_options import as_tuple

        languages = () if lang is None else as_tuple("lang", lang)
        return self.check(
            find_hotspots(
                self.question,
                by,
                files=files,
                least=least,
                limit=limit,
                path=path,
                languages=languages,
                everything=everything,
            )
        )

    def copies(
        self,
        *,
        least: int = 1,
        first: int = 1,
        limit: int | None = None,
        path: PathPatterns = "",
        everything: bool = False,
    ) -> Answer[DuplicateBlocks]:
        """Return duplicate blocks of at least `least` code lines, the longest first.

        - `first`: the number of the first block to return, counted from 1.
        - `limit`: the maximum number of blocks, by default all.
        - `everything`: include blocks that occur only in tests or in vendored, generated or minified files. By default,
          these blocks are only counted.
        """
        from codebatch.operations.queries.duplicates import find_copies

        return self.check(
            find_copies(self.question, least=least, first=first, limit=limit, path=path, everything=everything)
        )

    def copy_sources(self, block: DuplicateBlock) -> list[tuple[DuplicateLocation, tuple[SourceLine, ...]]]:
        """Return the first locations of a duplicate block, each with its source or the beginning of its source."""
        from codebatch.operations.queries.duplicates import read_copies

        return read_copies(self.question, block)

    def older(self, named: Batch | str, *, of_files: bool = False) -> Batch:
        """Open the batch that this batch is compared with. `named` is a reference as in `Store.side`.

        If `named` is an open batch, return it.
        """
        if isinstance(named, Batch):
            return named
        from codebatch.operations.comparison.revisions import find_revision

        check_reference(named)
        store, note = self.question.store, self.question.note
        revision = find_revision(store, named, partial(open_batch_query, store, note=note), note, of_files=of_files)
        return Batch(revision, self._check_open, partial=self._is_partial)

    def compare(self, old: Batch | str, **filters: Unpack[OutputFilters]) -> Comparison:
        """Compare this batch with an older batch. Diagnostics are compared, unless the filter `kind` selects other
        record types.

        `old` is an open batch, which may be in another store, or a reference as in `Store.side`. The filters are the
        same as in `outputs`. A change is included if its old or its new record matches the filters.
        """
        from msgspec import structs

        from codebatch.operations.comparison.comparison import compared_kinds, compares_only_files
        from codebatch.query.filters.record_options import make_filter

        record_filter = make_filter(filters)
        kinds = compared_kinds(record_filter)
        old = self.older(old, of_files=compares_only_files(kinds))
        record_filter = structs.replace(record_filter, kinds=())
        return compare_batches(old, self, kinds, record_filter=record_filter, task=filters.get("task"))

    def impact(
        self,
        path: str,
        depth: int | None = None,
        within: PathPatterns = "",
        *,
        is_exact: bool = False,
        for_tests: bool = False,
    ) -> Answer[Impact]:
        """Return the files that depend on a file.

        `depth` limits the number of import steps, by default unlimited. `within` restricts the returned files by path.
        With `is_exact`, only imports count that certainly refer to their file. With `for_tests`, the answer is
        incomplete if it has no test file, but evidence that a test uses the file.
        """
        from codebatch.operations.names.file_impact import find_impact

        return self.check(find_impact(self.question, path, depth, within, is_exact=is_exact, for_tests=for_tests))

    def imports(self, path: PathPatterns = "") -> Answer[list[FileImport]]:
        """Return all imports between files, sorted by path. With `path`, only imports from or to matching files."""
        from codebatch.operations.queries.dependencies import find_imports

        return self.check(find_imports(self.question, path))

    def changes(self, *tasks: str, path: PathPatterns = "") -> Answer[list[ChangedFile]]:
        """Return the changes of files that tasks propose, by default all tasks, sorted by path. Nothing is written.

        `path` restricts them by path. Raises InvalidInput if the batch has no task of a name.
        """
        from codebatch.operations.changes.changed_files import make_changed_files
        from codebatch.operations.changes.listing import find_changes

        found = self.check(find_changes(self.question, tasks, path))
        return Answer(
            question=found.question,
            result=make_changed_files(self.question.store, found.result),
            completeness=found.completeness,
        )

    def import_cycles(self, path: PathPatterns = "", *, everything: bool = False) -> Answer[list[Cycle]]:
        """Return import cycles, the smallest first. With `path`, only cycles with a matching file.

        By default, these cycles are left out. `everything` includes them:

        - cycles that consist only of tests, vendored and generated files
        - cycles through imports that are not executed while files are loaded
        """
        from codebatch.operations.queries.dependencies import find_import_cycles

        return self.check(find_import_cycles(self.question, path, everything=everything))


def compare_batches(
    old: Batch,
    new: Batch,
    kinds: Collection[str] = ("diagnostic",),
    *,
    record_filter: RecordFilter | None = None,
    task: str | None = None,
) -> Comparison:
    """Compare two batches, the later one `new`, for some record types.

    The result has the rows with a record that passes the filter `record_filter`. Raises InvalidInput, also for batches
    of different projects, StoreCorrupt, and BatchIncomplete for an incomplete batch that was not opened with `partial`.
    """
    from codebatch.operations.comparison.comparison import compare_batches, refuse_unrelated_batches

    comparison = compare_batches(old.question, new.question, kinds, asked=record_filter, task=task)
    old.check(comparison.old)
    new.check(comparison.new)
    refuse_unrelated_batches(comparison)
    return comparison
