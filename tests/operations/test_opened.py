"""Tests of the Python API of a store: typed, lazy, complete or an error, equal to the command line, closed on exit."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import codebatch
from codebatch.cli import cli
from codebatch.cli.framework.exit import run_to_exit_status
from codebatch.cli.framework.record_types import RECORD_TYPES_BY_NOUN
from codebatch.errors import BatchIncomplete, InvalidInput, StoreCorrupt, StoreUntrusted, UnknownId
from codebatch.model.record import Diagnostic, Edge, File, Metric, Record, Symbol
from codebatch.model.record_counts import RecordCounts
from codebatch.operations.api.batch import Batch
from codebatch.operations.api.store import Store
from codebatch.operations.queries.batch_query import Answer, open_batch_query
from codebatch.operations.queries.definitions import ends_with_name
from codebatch.operations.runs.indexing import build_index
from codebatch.query.completeness import Completeness
from codebatch.query.sources.repeated_findings import unmerged_source
from codebatch.query.sources.sources import ShardRecords
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.batches.store_directory import open_store as open_store_at
from codebatch.system.files.counted_files import CountedFiles
from tests.index.batches import Said, diagnostic, make_saying, make_store, symbol
from tests.support.batches import make_batch

ITEMS = 12
"""The items are in four shards."""
SEVERITIES = ("error", "warning", "info", "hint")


def _at_item(item: int, record: Record) -> Record:
    return msgspec.structs.replace(record, path=f"{item:03d}")


RECORDS: Said = {
    "parse": [
        [
            File(
                path=f"{item:03d}", lang=("python", "c", "go")[item % 3], encoding="utf-8", lines=item, class_="text",
                parse="ok",
            )
        ]
        for item in range(ITEMS)
    ],
    "symbols": [
        [
            _at_item(item, symbol(f"f{item % 4}")),
            _at_item(item, symbol("other")),
            Edge(path=f"{item:03d}", edge_type="calls", source="f", target=f"m.f{item % 4}", line=item + 1),
        ]
        for item in range(ITEMS)
    ],
    "lint": [
        [
            _at_item(item, diagnostic(f"E{item % 3}", SEVERITIES[item % 4])),
            Metric(path=f"{item:03d}", metric=("lines", "depth")[item % 2], value=item * 7 % 5),
        ]
        for item in range(ITEMS)
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def store_dir(tmp_path_factory: pytest.TempPathFactory) -> StoreDir:
    """A store with a merged batch. Tests must not change it."""
    store = make_store(tmp_path_factory.mktemp("opened"))
    make_saying(store, ITEMS, RECORDS)
    return store


@pytest.fixture
def batch(store_dir: StoreDir) -> Batch:
    return codebatch.open(store_dir.root).batch("latest")


@pytest.fixture
def unfinished(tmp_path: Path) -> Store:
    """A store whose batch was only planned."""
    store = make_store(tmp_path)
    make_batch(store, [b"a", b"b"], shard_items=2)
    return codebatch.open(store.root)


def test_records_have_types_that_a_type_checker_knows(batch: Batch) -> None:
    """mypy checks this file. Each error that it must report is ignored, and mypy reports an ignore without an error."""
    errors: list[codebatch.Diagnostic] = list(batch.diagnostics(severity="error", path="0"))
    assert [(record.path_bytes, record.code) for record in errors] == [(b"000", "E0"), (b"004", "E1"), (b"008", "E2")]
    assert codebatch.Metric(path_b64="Y2Fm6S5weQ==", metric="m", value=1).path_bytes == b"caf\xe9.py"
    names: list[str] = [record.name for record in batch.symbols(symbol_type=("class", "function"), limit=1)]
    assert names == ["f0"]
    assert sum(record.value for record in batch.metrics(metric="lines")) == sum(
        item * 7 % 5 for item in range(0, ITEMS, 2)
    )
    assert [type(record) for record in batch.outputs(path="000")] == [File, Symbol, Symbol, Edge, Diagnostic, Metric]
    assert batch.stats(by="lang", kind="file").result.counts == (("c", 4), ("go", 4), ("python", 4))
    with pytest.raises(InvalidInput, match="unknown severity 'grave'"):
        batch.diagnostics(severity="grave")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="unknown filter 'metric'"):
        batch.files(metric="lines")  # type: ignore[call-arg]


def test_first_record_is_returned_before_the_last_shard_is_read(store_dir: StoreDir) -> None:
    files = CountedFiles()
    batch = Store(open_store_at(files, store_dir.root), pytest.fail).batch()
    records = iter(batch.diagnostics())
    first = next(records)
    assert first.path_bytes == b"000"
    assert len(_shards_read(files)) == 1
    assert len(list(records)) == ITEMS - 1
    assert len(_shards_read(files)) == 4


def _shards_read(files: CountedFiles) -> list[Path]:
    return [path for path in files.paths if path.name.endswith(".jsonl.zst") and path.parent.name == "lint"]


def test_records_can_be_iterated_again_and_rows_have_the_requested_fields(batch: Batch) -> None:
    records = batch.symbols(name="f1", fields=("path", "lang"))
    assert list(records) == list(records)
    assert len(list(records)) == 3
    rows = [{"path": "001", "lang": "c"}, {"path": "005", "lang": "go"}, {"path": "009", "lang": "python"}]
    assert [list(records.result), list(records.result)] == [rows, rows]
    half = iter(records)
    next(half)
    assert len(list(records)) == 3, "a second iteration did not start at the first record"
    assert len(list(half)) == 2


@pytest.mark.parametrize("noun", sorted({*RECORD_TYPES_BY_NOUN} - {"stats"}))
def test_incomplete_answer_is_an_error_unless_partial_is_requested(unfinished: Store, noun: str) -> None:
    with pytest.raises(BatchIncomplete, match=r"0\.0% of the data that this query needs .* partial=True"):
        getattr(unfinished.batch(), noun)()
    part = getattr(unfinished.batch(partial=True), noun)()
    assert (part.is_complete, part.completeness.done, list(part)) == (False, 0, [])
    assert part.progress == "0 of 2 files done"


def test_every_query_of_an_unfinished_batch_is_an_error(unfinished: Store) -> None:
    batch, partial = unfinished.batch(), unfinished.batch(partial=True)
    questions: list[Callable[[Batch], Answer[object]]] = [
        lambda batch: batch.summary(),
        lambda batch: batch.worst(3),
        lambda batch: batch.errors(),
        lambda batch: batch.top(),
        lambda batch: batch.entries(),
        lambda batch: batch.inspect("a"),
        lambda batch: batch.stats(),
        lambda batch: batch.describe_codes(["E1"]),
    ]
    for question in questions:
        with pytest.raises(BatchIncomplete):
            question(batch)
        assert not question(partial).is_complete
    assert not batch.completeness.is_complete
    assert batch.status().standing.state.value == "PENDING"


@pytest.mark.parametrize(
    ("whole", "message", "hint"),
    [
        (Completeness(planned=4, done=4), None, None),
        (
            Completeness(planned=4, done=1, files=2, files_done=1),
            "1 of 2 files done, batch {} has 25.0% of the data that this query needs (1 of 4 results)",
            "resume it with: codebatch resume --batch {}",
        ),
        (
            Completeness(planned=4, done=4, failed=1),
            "batch {} has 75.0% of the data that this query needs (3 of 4 results)",
            "see: codebatch errors --batch {}",
        ),
        (
            Completeness(planned=4, done=4, lacks_files=True),
            "batch {} is restricted to , and this query needs all files",
            "analyse all files with: codebatch run PATH",
        ),
    ],
)
def test_shortfall_of_an_answer_has_a_message_and_a_hint(
    batch: Batch, whole: Completeness, message: str | None, hint: str | None
) -> None:
    lacks = Answer(question=batch.question, result=(), completeness=whole).shortfall
    if message is None or hint is None:
        assert lacks is None
        return
    assert lacks is not None
    assert (lacks.message, lacks.hint) == (message.format(batch.id), hint.format(batch.id))
    answer = Answer(question=batch.question, result=(), completeness=whole)
    with pytest.raises(BatchIncomplete) as raised:
        batch.check(answer)
    assert raised.value.message == f"{lacks.message}; to accept incomplete answers, open the batch with partial=True"
    assert raised.value.hint == lacks.hint


def test_closed_store_rejects_every_query(store_dir: StoreDir) -> None:
    with codebatch.open(store_dir.root) as store:
        batch = store.batch()
        files, begun = batch.files(), iter(batch.files())
        assert next(begun).path_bytes == b"000"
    for ask_on in (
        store.batch, store.batches, store.__enter__, batch.files, batch.summary, lambda: batch.completeness,
        lambda: list(files), lambda: list(begun), lambda: batch.is_stale,
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match="is closed"):
            ask_on()
    store.close()


def _some_values(*values: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True)


# Each noun is queried by those of these options that the command line has for it.
_OPTIONS: dict[str, st.SearchStrategy[object]] = {
    "kind": _some_values("symbol", "metric", "file", "diagnostic"),
    "severity": _some_values("error", "warning"),
    "code": _some_values("E1", "E*", "X"),
    "tool": _some_values("t", "ruff"),
    "name": _some_values("f1", "f*", "other"),
    "metric": _some_values("lines", "depth"),
    "lang": _some_values("python", "c", "cobol"),
    "path": st.sampled_from(("00", "01*", "0?[1-3]", "x")),
    "where": st.sampled_from(("path > '004'", "lang == 'go'", "kind == 'symbol'")),
    "task": st.sampled_from(("lint", "symbols")),
    "sort": st.sampled_from(("path", "-path", "-lang")),
    "limit": st.integers(1, 5),
    "offset": st.integers(0, 5),
    "fields": _some_values("path", "kind", "lang", "dir"),
}


@st.composite
def _questions(draw: st.DrawFn) -> tuple[str, dict[str, object]]:
    noun = draw(st.sampled_from(["outputs", "diagnostics", "symbols", "metrics", "files"]))
    able = [name for name in _OPTIONS if f"--{name.replace('_', '-')}" in RECORD_TYPES_BY_NOUN[noun].options]
    names = draw(st.lists(st.sampled_from(able), max_size=4, unique=True))
    return noun, {name: draw(_OPTIONS[name]) for name in names}


def _arguments(options: dict[str, object]) -> Iterable[str]:
    for name, value in options.items():
        values = [",".join(value)] if name == "fields" and isinstance(value, list) else value
        for item in values if isinstance(values, list) else [values]:
            yield f"--{name.replace('_', '-')}={item}"


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_questions())
def test_python_query_matches_the_command_line_output(
    store_dir: StoreDir, monkeypatch: pytest.MonkeyPatch, question: tuple[str, dict[str, object]]
) -> None:
    noun, options = question
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    errors = io.StringIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", printed)
        patch.setattr(sys, "stderr", errors)
        arguments = ["query", noun, "--store", str(store_dir.root), "-o", "jsonl", "-q", *_arguments(options)]
        status = run_to_exit_status(cli, arguments)
    printed.seek(0)
    batch = codebatch.open(store_dir.root, note=lambda _: None).batch()
    if status == 2:
        with pytest.raises(InvalidInput, match=re.escape(errors.getvalue().splitlines()[0].removeprefix("error: "))):
            getattr(batch, noun)(**options)
        return
    records = getattr(batch, noun)(**options)
    assert status == 0, errors.getvalue()
    lines = printed.buffer.read().splitlines()
    assert [msgspec.json.encode(row) for row in records.result] == lines
    if "fields" not in options:
        assert [msgspec.json.encode(record) for record in records] == lines


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"codes": "E1"}, "unknown filter 'codes'"),
        ({"code": []}, "`code` is empty"),
        ({"code": [1]}, "Expected `str`, got `int`"),
        ({"code": 1}, "Expected `array`, got `int`"),
        ({"path": Path("a")}, "Expected `str | array`"),
        ({"path": []}, "`path` is empty"),
        ({"path": "\ud800*"}, "`path` is not valid text"),
        ({"name": "\udcff"}, "`name` is not valid text"),
        ({"limit": 0}, "`limit` must be at least 1"),
        ({"limit": "1"}, "Expected `int | null`"),
        ({"offset": -1}, "`offset` must be at least 0"),
        ({"task": ("lint",)}, "`task` must be one name, not tuple"),
        ({"task": "nope"}, "has no task 'nope'"),
        ({"where": "__import__('os')"}, "."),
        ({"name": "f", "severity": "error"}, "no record can match all filters"),
    ],
)
def test_invalid_query_is_rejected_at_the_call(batch: Batch, options: dict[str, object], problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        batch.outputs(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "line",
    [
        b'{"kind":"file","path":"a","lang":1}',
        b'{"kind":"nope","path":"a"}',
        b'{"kind":[],"path":"a"}',
        b'{"kind":"metric","metric":"m","value":1}',
        b'{"kind":"metric","metric":"m","value":1,"path_b64":"%"}',
    ],
)
def test_invalid_record_is_damage(batch: Batch, monkeypatch: pytest.MonkeyPatch, line: bytes) -> None:
    piece = ShardRecords(RecordCounts(kinds={"file": 1}), lambda: iter([line + b"\n"]), "")
    monkeypatch.setattr(unmerged_source(batch.question.records.source), "iter_pieces", lambda *_: iter([piece]))
    records = batch.outputs(task="parse")
    with pytest.raises(StoreCorrupt):
        list(records)


def test_store_of_another_user_opens_only_if_named(
    store_dir: StoreDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(store_dir.root, tmp_path / ".codebatch")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreUntrusted):
        codebatch.open()
    assert len(list(codebatch.open(".codebatch").batch().files())) == ITEMS
    with pytest.raises(InvalidInput):
        codebatch.open("")
    with pytest.raises(InvalidInput, match="no such directory: none"):
        codebatch.open(".codebatch", project="none")


def test_older_batch_in_place_of_a_damaged_batch_is_a_warning(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    older = make_saying(store, 2, {}, second=1)
    newer = make_saying(store, 3, {}, second=2)
    (newer.root / "batch.json").write_text("{")
    with pytest.warns(UserWarning, match="skipped"):
        assert codebatch.open(store.root).batch().id == older.id
    notes: list[str] = []
    assert [listed.state for listed in codebatch.open(store.root, note=notes.append).batches()] == [
        "COMPLETED",
        "DAMAGED",
    ]
    assert len(notes) == 1
    with pytest.raises(UnknownId):
        codebatch.open(store.root, note=notes.append).batch("batch-00")


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> tuple[StoreDir, BatchDir]:
    store = make_store(tmp_path_factory.mktemp("indexed"))
    batch = make_saying(store, ITEMS, RECORDS)
    build_index(store, batch)
    return store, batch


def test_abandoned_query_leaves_no_descriptor_open(indexed: tuple[StoreDir, BatchDir]) -> None:
    """The descriptors are closed before the next garbage collection.

    The database of an index is memory with a descriptor.
    """
    gc.collect()
    gc.disable()
    try:
        before = _open_files()
        batch = codebatch.open(indexed[0].root, note=pytest.fail).batch()
        symbols = iter(batch.symbols(name="f*"))
        next(symbols)
        assert [name for name in _open_files() if name not in before] == ["/memfd:codebatch-index (deleted)"]
        batch.summary(), batch.inspect("003"), batch.stats("lang")
        del symbols, batch
        assert _open_files() == before
    finally:
        gc.enable()


def _open_files() -> list[str]:
    targets = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            targets.append(os.readlink(f"/proc/self/fd/{name}"))
    return sorted(targets)


def test_forked_process_continues_an_open_query(indexed: tuple[StoreDir, BatchDir]) -> None:
    batch = codebatch.open(indexed[0].root, note=pytest.fail).batch()
    symbols = iter(batch.symbols(name="f*"))
    first = next(symbols)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        counts = [len(list(symbols)), len(list(batch.symbols(name="f1"))), len(list(batch.diagnostics(code="E1")))]
        os.write(writing, msgspec.json.encode(counts))
        os._exit(0)
    os.close(writing)
    assert os.waitpid(child, 0)[1] == 0
    with os.fdopen(reading, "rb") as answer:
        assert msgspec.json.decode(answer.read()) == [ITEMS - 1, 3, 4]
    assert (first.name, len(list(symbols))) == ("f0", ITEMS - 1), "the parent process did not continue its query"


def test_several_threads_query_the_same_batch(indexed: tuple[StoreDir, BatchDir]) -> None:
    batch = codebatch.open(indexed[0].root, note=pytest.fail).batch()
    at_once = threading.Barrier(4)
    counts: list[int] = []

    def look(name: str) -> None:
        at_once.wait()
        counts.extend(len(list(batch.symbols(name=name, lang="python"))) for _ in range(3))

    threads = [threading.Thread(target=look, args=(f"f{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [1] * 12


def test_batch_methods_match_the_use_cases(store_dir: StoreDir, batch: Batch) -> None:
    question = open_batch_query(store_dir)
    assert (batch.id, batch.tasks) == (question.batch.id, question.records.task_names)
    assert (batch.completeness.is_complete, batch.completeness.progress) == (True, "")
    assert [entry.path for entry, _ in batch.entries(2).result] == [b"000", b"001"]
    assert [row["code"] for row in batch.worst(2).result] == ["E0", "E1"]
    assert batch.top("code", limit=1).result == [("E0", 4)]
    assert batch.top("metric:lines", limit=1).result[0][1] == 4
    assert batch.content("003") == (b"003", b"003" * 3, {})
    assert [row["kind"] for row in batch.inspect("003", kind=("symbol", "file")).result.records] == [
        "file", "symbol", "symbol",
    ]  # fmt: skip
    assert [row["name"] for row in batch.outline("003").result.records] == ["f3", "other"]
    assert [row["path"] for row in batch.definitions("f3").result] == ["003", "007", "011"]


@pytest.mark.parametrize(
    ("name", "matches"),
    [
        ("f", ["p->f", "a.p->f", "A\\f", "f"]),
        ("p->f", ["p->f", "a.p->f"]),
        ("operator->", ["p->operator->"]),
        (">f", []),
    ],
)
def test_calls_through_a_pointer_match_the_function_name(name: str, matches: list[str]) -> None:
    targets = ("p->f", "a.p->f", "A\\f", "f", "pf", "p->operator->")
    assert [target for target in targets if ends_with_name(target, name)] == matches


@pytest.mark.parametrize("reference", [3, b"latest", ["latest"]])
def test_batch_reference_must_be_text(store_dir: StoreDir, reference: object) -> None:
    with pytest.raises(InvalidInput, match="given as str, not as") as raised:
        codebatch.open(store_dir.root).batch(reference)  # type: ignore[arg-type]
    assert "latest~N" in str(raised.value.hint)
