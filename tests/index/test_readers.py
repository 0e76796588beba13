"""Tests of readers of an index during changes: answers are complete, or an error says why there is none."""

from __future__ import annotations

import multiprocessing
import os
import stat
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path

import msgspec
import pytest

from codebatch.errors import StoreCorrupt
from codebatch.operations.project.stores import open_store
from codebatch.operations.runs.indexing import build_index
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.sources.records import BatchRecords
from codebatch.store.batches.batch_directory import BatchDir, open_batch
from codebatch.store.batches.store_directory import StoreDir
from tests.support.resources import keep_open

from .batches import cut_small, make_saying, make_store, symbol

FILTER = RecordFilter(names=("f",))
ITEMS = 40


@pytest.fixture(scope="module", params=["one part", "a part a key"])
def indexed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[StoreDir, BatchDir]]:
    """A store and its indexed batch. A third of its items has the searched name; the names of the others fill pages."""
    store = make_store(tmp_path_factory.mktemp("indexed"))
    records = [
        [symbol("f" if item % 3 == 0 else f"s{item}"), *map(symbol, _filler_names(item))] for item in range(ITEMS)
    ]
    batch = make_saying(store, ITEMS, {"symbols": records})
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "one part":
            cut_small(patch)
        build_index(store, batch)
        yield store, batch


def _filler_names(item: int) -> list[str]:
    return [f"{item}-{number}" * 9 for number in range(9)]


def _answer(records: BatchRecords) -> bytes:
    return msgspec.json.encode([*records.iter_records("symbols", FILTER)])


def _whole(indexed: tuple[StoreDir, BatchDir]) -> bytes:
    return _answer(BatchRecords(*indexed))


def _query_in_new_process(root: str, batch_id: str, expected: bytes) -> None:
    """Query as another process. Exit with status 1 if anything is reported or the answer differs."""
    store = open_store(Path(root))
    notes: list[str] = []
    is_same = _answer(BatchRecords(store, open_batch(store, batch_id), notes.append)) == expected
    os._exit(0 if is_same and not notes else 1)


def _query_in_forked_process(records: BatchRecords, expected: bytes) -> None:
    os._exit(0 if _answer(records) == expected else 1)


def test_forked_process_reads_an_open_index(indexed: tuple[StoreDir, BatchDir]) -> None:
    records, expected = BatchRecords(*indexed, pytest.fail), _whole(indexed)
    assert _answer(records) == expected
    process = multiprocessing.get_context("fork").Process(target=_query_in_forked_process, args=(records, expected))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert _answer(records) == expected


@pytest.mark.slow
def test_spawned_processes_read_during_a_rebuild(indexed: tuple[StoreDir, BatchDir]) -> None:
    store, batch = indexed
    arguments = (str(store.root), batch.id, _whole(indexed))
    context = multiprocessing.get_context("spawn")
    tracker = resource_tracker.getfd()
    assert tracker is not None
    keep_open(tracker)
    processes = [context.Process(target=_query_in_new_process, args=arguments) for _ in range(3)]
    for process in processes:
        process.start()
    while any(process.is_alive() for process in processes):
        build_index(store, batch, rebuilds=True)
    assert [process.exitcode for process in processes] == [0, 0, 0]


def test_reader_that_opens_during_a_rebuild_finds_the_new_index(
    indexed: tuple[StoreDir, BatchDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old index is removed between the reads of index.json and of its part."""
    store, batch = indexed
    read = store.files.read_range
    built: list[Path] = []

    def read_late(path: Path, offset: int, length: int) -> bytes:
        if path.name.startswith("base-") and not built:
            built.append(path)
            build_index(store, batch, rebuilds=True)
        return read(path, offset, length)

    monkeypatch.setattr(store.files, "read_range", read_late)
    assert _answer(BatchRecords(store, batch, pytest.fail)) == _whole(indexed)
    assert not built[0].exists()


@pytest.fixture
def locked(indexed: tuple[StoreDir, BatchDir]) -> Iterator[tuple[StoreDir, BatchDir]]:
    """A store without write permission."""
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in indexed[0].root.rglob("*")}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    yield indexed
    for path, mode in modes.items():
        path.chmod(mode)


def test_read_only_store_is_queried(locked: tuple[StoreDir, BatchDir], monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may write despite the permissions, so every function that writes is disabled as well."""
    store, batch = locked
    for name in ("write_atomic", "write_new", "write_volatile", "make_directory", "remove", "create_exclusive"):
        monkeypatch.setattr(store.files, name, lambda *_: pytest.fail("a reader wrote to the store"))
    assert _answer(BatchRecords(store, batch, pytest.fail)) == _whole(locked)


def test_damaged_shard_file_is_reported_with_an_index(indexed: tuple[StoreDir, BatchDir]) -> None:
    """Every 10th byte of a trailer is flipped, or the file is truncated there.

    The answer must be complete or an error.
    """
    store, batch = indexed
    expected = _whole(indexed)
    (path,) = batch.root.glob("outputs/*/symbols/000001-*")
    sound = path.read_bytes()
    start = int.from_bytes(sound[-12:-8], "little")
    error_count = 0
    for at in range(len(sound) - start, len(sound), 10):
        for data in (sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :], sound[:at]):
            path.write_bytes(data)
            try:
                assert _answer(BatchRecords(store, batch, pytest.fail)) == expected
            except StoreCorrupt:
                error_count += 1
    path.write_bytes(sound)
    assert error_count > 10
    assert _answer(BatchRecords(store, batch, pytest.fail)) == expected
