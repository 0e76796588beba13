"""SQL queries over the records of a batch. DuckDB executes them in this process (SPEC.md "SQL").

DuckDB does not read files of the store. The needed frames of shards are verified by their trailers and copied to a
private directory. The directory is deleted when the answer is no longer used.

After the views are created, DuckDB can access nothing else: no other files, no network, no extensions, no Python
variables. It also cannot change its settings. Statements run in a thread, so the main thread can react to Ctrl-C.
"""

from __future__ import annotations

import base64
import contextlib
import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from codebatch.errors import InvalidInput
from codebatch.installation import extra_command
from codebatch.model.entry import display_path, is_utf8
from codebatch.model.task import BUILT_IN_TASKS
from codebatch.model.text.suggestions import did_you_mean_text
from codebatch.operations.project.pipelines import pipelines_with
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.protocol.record_frames import FrameWriter
from codebatch.query.answers.sql_views import (
    SQL_VIEWS,
    ViewColumn,
    create_empty_view_sql,
    create_kind_view_sql,
    create_pivoted_view_sql,
    sql_literal,
    views_in_statement,
)
from codebatch.query.completeness import Completeness, emitting_tasks, misses_required_files, tasks_completeness
from codebatch.query.missing_tasks import pipelines_hint
from codebatch.query.sources.records import BatchRecords
from codebatch.query.sources.repeated_findings import outputs_of_task

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")

SQL_MEMORY_BYTES_MAX = 2 * 1024**3
SQL_SPILLED_BYTES_MAX = 16 * 1024**3
ROWS_PER_FETCH = 1000

_DUCKDB_SETTINGS = {
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "max_temp_directory_size": f"{SQL_SPILLED_BYTES_MAX}B",
    "memory_limit": f"{SQL_MEMORY_BYTES_MAX}B",
    "python_enable_replacements": "false",
}
_QUERY_TYPES = ("SELECT", "MULTI")
"""Statement types of queries.

MULTI is the type of statements with PIVOT. Such a statement is a query only if it matches _FIRST.
"""
_QUERY_KEYWORD = re.compile(
    r"(\s|\(|--[^\n]*\n|/\*.*?\*/)*(describe|from|pivot|pivot_wider|select|show|summarize|table|unpivot|values|with)\b",
    re.DOTALL | re.IGNORECASE,
)


class SqlResult(NamedTuple):
    """The result of an SQL query: columns with unique names, and rows of Python values.

    Iteration over the rows can raise InvalidInput.
    """

    columns: tuple[ViewColumn, ...]
    rows: Iterator[tuple[object, ...]]


@contextlib.contextmanager
def execute_sql(question: BatchQuery, statement: str) -> Iterator[Answer[SqlResult]]:
    """Execute one query over the views in VIEWS. Its rows are available until the context ends.

    Raises InvalidInput in these cases: the statement is not a query, DuckDB rejects it or is not installed, or the
    query needs more than SQL_MEMORY_BYTES_MAX. Raises StoreCorrupt.
    """
    _load_duckdb()
    views = views_in_statement(statement)
    kinds = tuple(dict.fromkeys(kind for view in views.values() for kind in view.kinds))
    with tempfile.TemporaryDirectory(prefix="codebatch-sql-") as directory, _SqlSession(Path(directory)) as session:
        session.check(statement)
        session.make_views(question.records, kinds, views)
        answer_completeness = _views_completeness(question, kinds)
        yield Answer(question=question, result=session.run_query(statement), completeness=answer_completeness)


def _load_duckdb() -> None:
    try:
        import duckdb  # noqa: F401 - an optional dependency, slow to import
    except ImportError as error:
        raise InvalidInput(
            "SQL queries need DuckDB, which is not installed", hint=f"install it with: {extra_command('sql')}"
        ) from error


class _SqlSession:
    """An in-memory DuckDB connection with its thread. All its files are in one directory."""

    def __init__(self, directory: Path) -> None:
        import duckdb

        self._directory = directory
        self._connection = duckdb.connect(
            ":memory:", config={**_DUCKDB_SETTINGS, "temp_directory": str(directory / "spilled")}
        )
        self._thread = ThreadPoolExecutor(1)

    def __enter__(self) -> _SqlSession:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.interrupt()
        self._thread.shutdown()
        self._connection.close()

    def check(self, statement: str) -> None:
        """Raise InvalidInput if the text is not exactly one query."""
        if not statement.isascii() and statement.encode("utf-8", "replace").decode() != statement:
            raise InvalidInput("the statement is not valid UTF-8")
        statements = self._run_in_thread(lambda: self._connection.extract_statements(statement))
        if len(statements) != 1:
            raise InvalidInput(
                f"expected one statement, got {len(statements)}" if statements else "the statement is empty",
                hint="for example: codebatch sql 'select lang, count(*) from files group by lang'",
            )
        name = statements[0].type.name
        if name not in _QUERY_TYPES or (name == "MULTI" and not _QUERY_KEYWORD.match(statement)):
            raise InvalidInput(f"only queries are allowed, not {name}", hint="start the statement with SELECT")

    def make_views(self, records: BatchRecords, kinds: Sequence[str], named: Collection[str]) -> None:
        """Create all views over records of some types, then disable all other access.

        A view that the statement does not name has no rows. If the statement uses such a view nevertheless, the query
        fails. Names of kinds are only views if the statement names them, so that they are not listed.
        """
        frame_paths = _copy_frames(records, kinds, self._directory)
        undecodable_paths = _undecodable_paths(records) if kinds else []
        statements = [
            create_kind_view_sql(kind, [str(path) for path in frame_paths[kind]], undecodable_paths) for kind in kinds
        ]
        for name, view in SQL_VIEWS.items():
            if name in kinds:
                continue
            is_queried = name in named and bool(view.select)
            refusal = f"write the name of the view in the statement itself: {name}"
            statements.append(create_pivoted_view_sql(name) if is_queried else create_empty_view_sql(name, refusal))
        statements += (
            f"SET allowed_directories = [{sql_literal(str(self._directory))}]",
            "SET enable_external_access = false",
            "SET lock_configuration = true",
        )
        for statement in statements:
            self._run_in_thread(partial(self._connection.execute, statement))

    def run_query(self, statement: str) -> SqlResult:
        """Execute a query and return its rows. Raises InvalidInput."""
        self._run_in_thread(lambda: self._connection.execute(statement))
        described = self._connection.description or []
        names = _unique_names([str(description[0]) for description in described])
        columns = tuple(
            ViewColumn(name, str(description[1])) for name, description in zip(names, described, strict=True)
        )
        return SqlResult(columns, self._iter_rows())

    def _iter_rows(self) -> Iterator[tuple[object, ...]]:
        while rows := self._run_in_thread(lambda: self._connection.fetchmany(ROWS_PER_FETCH)):
            yield from rows

    def _run_in_thread(self, work: Callable[[], T]) -> T:
        """Run a function in the thread.

        DuckDB errors become InvalidInput. An interruption of the caller interrupts DuckDB.
        """
        import duckdb

        future = self._thread.submit(work)
        try:
            return future.result()
        except duckdb.Error as error:
            raise _query_error(error) from error
        except BaseException:
            self._connection.interrupt()
            wait([future])
            raise


def _copy_frames(records: BatchRecords, kinds: Sequence[str], directory: Path) -> dict[str, list[Path]]:
    """Copy the shards' frames with records of the given types. Return the paths of the copies by record type."""
    paths: dict[str, list[Path]] = {kind: [] for kind in kinds}
    for number, (present_kinds, frames) in enumerate(_iter_frames(records, frozenset(kinds))):
        path = directory / f"{number}.jsonl.zst"
        path.write_bytes(frames)
        for kind in present_kinds:
            paths[kind].append(path)
    return paths


def _iter_frames(records: BatchRecords, kinds: frozenset[str]) -> Iterator[tuple[frozenset[str], bytes]]:
    """Yield the frames that contain records of the given types, and these types. Raises StoreCorrupt."""
    writer = FrameWriter()
    for name in records.task_names:
        outputs = outputs_of_task(records.source, name)
        output = None if outputs is None else outputs.task_output(name)
        if outputs is not None and output is not None:
            for index, shard in enumerate(output.shards):
                if present_kinds := kinds.intersection(shard.counts.kinds):
                    yield present_kinds, outputs.verified_frames(output, index)
            continue
        for piece in records.source.iter_pieces(name):
            if present_kinds := kinds.intersection(piece.counts.kinds):
                yield present_kinds, b"".join(writer.iter_encode(piece.read()))


def _undecodable_paths(records: BatchRecords) -> list[tuple[str, str]]:
    """Return the paths that are not UTF-8, each in base64, as in records, and in display form."""
    undecodable = (entry.path for entry in records.items if not is_utf8(entry.path))
    return [(base64.b64encode(path).decode(), display_path(path)) for path in undecodable]


def _views_completeness(question: BatchQuery, kinds: Sequence[str]) -> Completeness:
    """Return the completeness of the views of some record types.

    If no task of the batch produces a type, a note names this type.
    """
    records, catalogue = question.records, question.catalogue
    if not kinds:
        return Completeness()
    for kind in kinds:
        if not emitting_tasks(catalogue, records.task_names, (kind,)):
            emitting = emitting_tasks(catalogue, BUILT_IN_TASKS, (kind,))
            hint = pipelines_hint(pipelines_with(emitting, question.store.user_directory))
            question.note(f"no task of the batch produces records of kind {kind!r}" + (f"; {hint}" if hint else ""))
    needed = emitting_tasks(catalogue, records.task_names, kinds)
    lacks = misses_required_files(lambda: catalogue, records, needed, kinds)
    return tasks_completeness(records, needed, reports_failures=kinds == ("failure",), lacks_files=lacks)


def _unique_names(names: Sequence[str]) -> list[str]:
    """Return column names made unique. Repeated names get numbers: `a`, `a` → `a`, `a_1`."""
    unique: list[str] = []
    for name in names:
        chosen, number = name, 1
        while chosen in unique:
            chosen, number = f"{name}_{number}", number + 1
        unique.append(chosen)
    return unique


def _query_error(error: duckdb.Error) -> InvalidInput:
    """Return the error for a DuckDB error: its first line, with a hint."""
    message, *more = [line.strip() for line in str(error).splitlines() if line.strip()] or [
        "DuckDB rejected the statement"
    ]
    hint = next((line for line in more if line.startswith(("Did you mean", "Candidate"))), None)
    if message.startswith("Catalog Error: Table with name "):
        name = message.removeprefix("Catalog Error: Table with name ").partition(" ")[0]
        hint = did_you_mean_text(name, list(SQL_VIEWS))
    elif message.startswith("Permission Error"):
        hint = f"only these views can be read: {', '.join(SQL_VIEWS)}"
    elif message.startswith("Invalid Input Error: Required module 'pytz'"):  # pytz is not a dependency of codebatch
        message, hint = (
            "times with a time zone cannot be returned",
            "cast the value to text, for example now()::varchar",
        )
    elif message.startswith("Out of Memory Error"):
        hint = (
            f"a query can use {SQL_MEMORY_BYTES_MAX // 1024**3} GiB of memory: "
            "select fewer rows or columns, or aggregate them"
        )
    return InvalidInput(message, hint=hint)
