"""SQL over what a batch found: DuckDB, in this process, over checked copies of its current outputs (SPEC.md "SQL").

DuckDB reads no file of the store: the frames of shards that the statement can ask for are held against their trailers
and copied into a private directory, which goes with the answer. Once the views over them are made nothing else can be
reached, and no setting changed: no other file, no network, no extension, no variable of this program. A thread asks, so
that Ctrl-C finds the main one waiting.
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
from codebatch.model.entry import display_path
from codebatch.model.text.suggestions import did_you_mean
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.protocol.record_frames import FrameWriter
from codebatch.query.answers.sql_views import (
    VIEWS,
    ViewColumn,
    create_empty,
    create_kind,
    create_pivoted,
    named_views,
    quoted,
)
from codebatch.query.completeness import Completeness, completeness, lacks_files, tasks_that_give
from codebatch.query.sources.records import BatchRecords
from codebatch.store.results.outputs import current_outputs

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")

SQL_MEMORY_BYTES_MAX = 2 * 1024**3
SQL_SPILLED_BYTES_MAX = 16 * 1024**3
ROWS_AT_ONCE = 1000

_SETTINGS = {
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "max_temp_directory_size": f"{SQL_SPILLED_BYTES_MAX}B",
    "memory_limit": f"{SQL_MEMORY_BYTES_MAX}B",
    "python_enable_replacements": "false",
}
_ASKING = ("SELECT", "MULTI")
"""Statements that ask; MULTI is what a statement with a PIVOT in it is made of, one that begins with _FIRST asks."""
_FIRST = re.compile(
    r"(\s|\(|--[^\n]*\n|/\*.*?\*/)*(describe|from|pivot|pivot_wider|select|show|summarize|table|unpivot|values|with)\b",
    re.DOTALL | re.IGNORECASE,
)


class Rows(NamedTuple):
    """What SQL answers: columns, of which each name is given once, and the rows as they come, of Python's values.

    Whoever takes a row may meet InvalidInput.
    """

    columns: tuple[ViewColumn, ...]
    rows: Iterator[tuple[object, ...]]


@contextlib.contextmanager
def ask_sql(question: BatchQuery, statement: str) -> Iterator[Answer[Rows]]:
    """What one statement that asks answers, over the views of VIEWS. Its rows are there while the context is.

    Raises InvalidInput for what is no such statement, is refused by DuckDB or is beyond SQL_MEMORY_BYTES_MAX, and where
    DuckDB is not installed; StoreCorrupt.
    """
    _load()
    views = named_views(statement)
    kinds = tuple(dict.fromkeys(kind for view in views.values() for kind in view.kinds))
    with tempfile.TemporaryDirectory(prefix="codebatch-sql-") as directory, _Session(Path(directory)) as session:
        session.check(statement)
        session.make_views(question.records, kinds, views)
        whole = _wholeness(question, kinds)
        yield Answer(question=question, found=session.ask(statement), whole=whole)


def _load() -> None:
    try:
        import duckdb  # noqa: F401 - 50 ms, and an extra
    except ImportError as error:
        raise InvalidInput(
            "SQL queries need DuckDB, which is not installed", hint="install it with: pip install 'codebatch[sql]'"
        ) from error


class _Session:
    """DuckDB in memory, whose files are all in one directory."""

    def __init__(self, directory: Path) -> None:
        import duckdb

        self._directory = directory
        self._connection = duckdb.connect(
            ":memory:", config={**_SETTINGS, "temp_directory": str(directory / "spilled")}
        )
        self._thread = ThreadPoolExecutor(1)

    def __enter__(self) -> _Session:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.interrupt()
        self._thread.shutdown()
        self._connection.close()

    def check(self, statement: str) -> None:
        """Raise InvalidInput for what is not one statement that asks."""
        if not statement.isascii() and statement.encode("utf-8", "replace").decode() != statement:
            raise InvalidInput("the statement is not valid UTF-8")
        found = self._run(lambda: self._connection.extract_statements(statement))
        if len(found) != 1:
            raise InvalidInput(
                f"expected one statement, got {len(found)}" if found else "the statement is empty",
                hint="for example: codebatch sql 'select lang, count(*) from file group by lang'",
            )
        name = found[0].type.name
        if name not in _ASKING or (name == "MULTI" and not _FIRST.match(statement)):
            raise InvalidInput(f"only queries are allowed, not {name}", hint="start it with SELECT")

    def make_views(self, records: BatchRecords, kinds: Sequence[str], named: Collection[str]) -> None:
        """Make all views, over what there is of some kinds, and let nothing else be reached from now on.

        Those that the statement does not name have no rows, and refuse to be asked for any.
        """
        copied = _copy(records, kinds, self._directory)
        strange = _strange_paths(records) if kinds else []
        statements = [create_kind(kind, [str(path) for path in copied[kind]], strange) for kind in kinds]
        for name, view in VIEWS.items():
            if name in kinds:
                continue
            is_made = name in named and len(view.kinds) > 1
            refusal = f"write the name of the view in the statement itself: {name}"
            statements.append(create_pivoted(name) if is_made else create_empty(name, refusal))
        statements += (
            f"SET allowed_directories = [{quoted(str(self._directory))}]",
            "SET enable_external_access = false",
            "SET lock_configuration = true",
        )
        for statement in statements:
            self._run(partial(self._connection.execute, statement))

    def ask(self, statement: str) -> Rows:
        """What a statement answers. Raises InvalidInput."""
        self._run(lambda: self._connection.execute(statement))
        described = self._connection.description or []
        names = _once([str(each[0]) for each in described])
        columns = tuple(ViewColumn(name, str(each[1])) for name, each in zip(names, described, strict=True))
        return Rows(columns, self._rows())

    def _rows(self) -> Iterator[tuple[object, ...]]:
        while rows := self._run(lambda: self._connection.fetchmany(ROWS_AT_ONCE)):
            yield from rows

    def _run(self, work: Callable[[], T]) -> T:
        """Have the thread do something. What DuckDB refuses is InvalidInput; what interrupts us interrupts it."""
        import duckdb

        future = self._thread.submit(work)
        try:
            return future.result()
        except duckdb.Error as error:
            raise _refused(error) from error
        except BaseException:
            self._connection.interrupt()
            wait([future])
            raise


def _copy(records: BatchRecords, kinds: Sequence[str], directory: Path) -> dict[str, list[Path]]:
    """Copy the frames of all shards in which there are records of some kinds; where those of each kind lie."""
    paths: dict[str, list[Path]] = {kind: [] for kind in kinds}
    for number, (held, frames) in enumerate(_iter_frames(records, frozenset(kinds))):
        path = directory / f"{number}.jsonl.zst"
        path.write_bytes(frames)
        for kind in held:
            paths[kind].append(path)
    return paths


def _iter_frames(records: BatchRecords, kinds: frozenset[str]) -> Iterator[tuple[frozenset[str], bytes]]:
    """The frames of each shard that holds records of some kinds, and of which it does. Raises StoreCorrupt."""
    outputs = current_outputs(records.batch)
    if outputs is not None:
        for task in outputs.manifest.tasks:
            for index, shard in enumerate(task.shards):
                if held := kinds.intersection(shard.counts.kinds):
                    yield held, outputs.whole_frames(task, index)
        return
    writer = FrameWriter()
    for name in records.task_names:
        for piece in records.source.iter_pieces(name):
            if held := kinds.intersection(piece.counts.kinds):
                yield held, b"".join(writer.iter_encode(piece.read()))


def _strange_paths(records: BatchRecords) -> list[tuple[str, str]]:
    """The paths that are no UTF-8, as records have them, and as people are shown them."""
    strange = (entry.path for entry in records.items if not entry.path.isascii() and _is_strange(entry.path))
    return [(base64.b64encode(path).decode(), display_path(path)) for path in strange]


def _is_strange(path: bytes) -> bool:
    try:
        path.decode()
    except UnicodeDecodeError:
        return True
    return False


def _wholeness(question: BatchQuery, kinds: Sequence[str]) -> Completeness:
    """How complete what the views of some kinds hold is. That no task of the batch gives a kind is noted."""
    records, catalogue = question.records, question.catalogue
    if not kinds:
        return Completeness()
    for kind in kinds:
        if not tasks_that_give(catalogue, records.task_names, (kind,)):
            question.note(f"no task of the batch produces records of kind {kind!r}")
    needed = tasks_that_give(catalogue, records.task_names, kinds)
    lacks = lacks_files(lambda: catalogue, records, needed, kinds)
    return completeness(records, needed, tells_failures=kinds == ("failure",), lacks_files=lacks)


def _once(names: Sequence[str]) -> list[str]:
    """Names of columns, each once: a second one gets a number."""
    found: list[str] = []
    for name in names:
        chosen, number = name, 1
        while chosen in found:
            chosen, number = f"{name}_{number}", number + 1
        found.append(chosen)
    return found


def _refused(error: duckdb.Error) -> InvalidInput:
    """What DuckDB says, in one line, and what was meant."""
    told, *more = [line.strip() for line in str(error).splitlines() if line.strip()] or [
        "DuckDB rejected the statement"
    ]
    hint = next((line for line in more if line.startswith(("Did you mean", "Candidate"))), None)
    if told.startswith("Catalog Error: Table with name "):
        name = told.removeprefix("Catalog Error: Table with name ").partition(" ")[0]
        hint = did_you_mean(name, list(VIEWS))
    elif told.startswith("Permission Error"):
        hint = f"only these views can be read: {', '.join(VIEWS)}"
    elif told.startswith("Invalid Input Error: Required module 'pytz'"):  # nothing of ours requires it
        told, hint = "times with a time zone cannot be returned", "cast the value to text, for example now()::varchar"
    elif told.startswith("Out of Memory Error"):
        hint = (
            f"a query can use {SQL_MEMORY_BYTES_MAX // 1024**3} GiB of memory: "
            "select fewer rows or columns, or aggregate them"
        )
    return InvalidInput(told, hint=hint)
