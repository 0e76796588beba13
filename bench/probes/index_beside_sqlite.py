"""Compare the index of a store's latest batch with an SQLite table with the same five indexes, in one process.

Print JSON: CPU seconds of both, sizes of their files, and seconds of equal look-ups. Terms are extracted beforehand.
The time that SQLite's side takes to decode records is not counted.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from codebatch.index import keys
from codebatch.index.build import build_generation
from codebatch.index.generations import index_directory
from codebatch.index.keys import TermLookup
from codebatch.index.read import BatchIndex, open_index
from codebatch.operations.project.stores import open_store
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.results.outputs import MergedOutputs, current_outputs

LOOKUPS = 200
_INDEXES = ("name", "last", "depends", "code, severity", "metric, value")
_Row = tuple[int, int, str | None, str | None, str | None, str | None, str | None, str | None, int | None]


class _Record(msgspec.Struct):
    kind: str
    name: str | None = None
    edge_type: str | None = None
    target: str | None = None
    code: str | None = None
    severity: str | None = None
    metric: str | None = None
    value: int | None = None


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """The figures that are printed."""

    records: int
    outputs_bytes: int
    index_bytes: int
    sqlite_bytes: int
    index_cpu_s: float
    sqlite_cpu_s: float
    index_open_s: float
    index_keys_s: float
    sqlite_keys_s: float
    index_prefixes_s: float
    sqlite_prefixes_s: float


def main() -> None:
    """Run `python -m bench.probes.index_beside_sqlite STORE DATABASE`."""
    store = open_store(Path(sys.argv[1]))
    batch = resolve_batch(store, None)
    outputs = current_outputs(batch)
    assert outputs is not None
    path = Path(sys.argv[2])
    path.unlink(missing_ok=True)
    table = sqlite3.connect(path)
    sys.stdout.buffer.write(msgspec.json.encode(_compare(store, batch, outputs, table, path)))


def _compare(
    store: StoreDir, batch: BatchDir, outputs: MergedOutputs, table: sqlite3.Connection, path: Path
) -> Compared:
    _build(store, batch, outputs)  # This first build extracts missing terms.
    shutil.rmtree(index_directory(store, batch.id))
    index_cpu_s = _cpu_s(lambda: _build(store, batch, outputs))
    decoding_s = _cpu_s(lambda: sum(1 for _ in _rows(outputs)))
    sqlite_cpu_s = _cpu_s(lambda: _fill(table, outputs)) - decoding_s
    began = time.perf_counter()
    index = open_index(store, batch.id)
    index_open_s = time.perf_counter() - began
    assert index is not None
    every = [name for (name,) in table.execute("SELECT DISTINCT name FROM records WHERE name > '' ORDER BY name")]
    names = random.Random(0).choices(every, k=LOOKUPS)
    beginnings = [name[: len(name) // 2 + 1] for name in names]
    (directory,) = index_directory(store, batch.id).iterdir()
    return Compared(
        records=sum(task.counts.records for task in outputs.manifest.tasks),
        outputs_bytes=sum(task.length for task in outputs.manifest.tasks),
        index_bytes=sum(file.stat().st_size for file in directory.iterdir()),
        sqlite_bytes=path.stat().st_size,
        index_cpu_s=index_cpu_s,
        sqlite_cpu_s=sqlite_cpu_s,
        index_open_s=index_open_s,
        index_keys_s=_look_up(index, [keys.make_lookup(keys.SYMBOL_TAG, name) for name in names]),
        sqlite_keys_s=_select(table, "name = ?", [(name,) for name in names]),
        index_prefixes_s=_look_up(index, [keys.make_lookup(keys.SYMBOL_TAG, f"{name}*") for name in beginnings]),
        sqlite_prefixes_s=_select(
            table, "name >= ? AND name < ?", [(name, f"{name}\U0010ffff") for name in beginnings]
        ),
    )


def _build(store: StoreDir, batch: BatchDir, outputs: MergedOutputs) -> None:
    with store.writing():
        build_generation(store, batch, outputs, print, rebuilds=False)


def _fill(table: sqlite3.Connection, outputs: MergedOutputs) -> None:
    table.execute("PRAGMA synchronous = OFF")
    table.execute("CREATE TABLE records (shard, frame, name, last, depends, code, severity, metric, value)")
    table.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", _rows(outputs))
    for number, columns in enumerate(_INDEXES):
        table.execute(f"CREATE INDEX index{number} ON records ({columns})")
    table.commit()


def _rows(outputs: MergedOutputs) -> Iterator[_Row]:
    decoder = msgspec.json.Decoder(_Record)
    shard = 0
    for task in outputs.manifest.tasks:
        for index in range(len(task.shards)):
            shard += 1
            for frame, lines in enumerate(outputs.iter_shard(task, index)):
                for record in decoder.decode_lines(lines):
                    depends = record.target if record.edge_type == "depends" else None
                    last = keys.last_component(record.target) if record.target is not None and depends is None else None
                    yield (
                        shard,
                        frame,
                        record.name,
                        last,
                        depends,
                        record.code,
                        record.severity,
                        record.metric,
                        record.value,
                    )


def _look_up(index: BatchIndex, lookups: list[TermLookup]) -> float:
    began = time.perf_counter()
    for lookup in lookups:
        index.find((lookup,))
    return time.perf_counter() - began


def _select(table: sqlite3.Connection, where: str, arguments: list[tuple[str, ...]]) -> float:
    began = time.perf_counter()
    for values in arguments:
        table.execute(f"SELECT DISTINCT shard, frame FROM records WHERE {where}", values).fetchall()
    return time.perf_counter() - began


def _cpu_s(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    main()
