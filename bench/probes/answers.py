"""`python -m bench.probes.answers STORE DATABASE TURNS`: the same questions to an open batch and to a table of sqlite.

The table has a row a record, whole, and five indexes like ours. Both sides are open and warm, and take turns. Seconds
are of CPU, for nothing waits for a disk.
"""

from __future__ import annotations

import random
import sqlite3
import sys
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from codebatch.index import keys
from codebatch.index.read import BatchIndex, open_index
from codebatch.model.analysis.item_table import item_range
from codebatch.query.answers.counting import count_records
from codebatch.query.fields import record_path
from codebatch.query.filters.decoding import decode_records
from codebatch.query.filters.filters import RecordFilter, last_name
from codebatch.query.sources.records import BatchRecords
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.batches.store_directory import StoreDir, open_store
from codebatch.system.files.files import RealFiles

SCATTERED = 300
_COLUMNS = ("kind", "path", "name", "code", "severity", "metric", "value", "symbol_type", "target", "doc")
_INDEXES = ("name", "target", "code, severity", "metric, value", "path")
_ROWS_AT_ONCE = 10_000


class Compared(msgspec.Struct, frozen=True):
    """Seconds of each turn of a question, on both sides. Ours should be at most `limit` times sqlite's."""

    what: str
    limit: float | None
    ours: list[float]
    sqlite: list[float]


class Answers(msgspec.Struct, frozen=True):
    """How many records were asked, how big both sides' files are, and what the questions took."""

    records: int
    ours_bytes: int
    sqlite_bytes: int
    compared: list[Compared]


Side = Callable[[], object]


def compare(store_root: Path, database: Path, turns: int) -> Answers:
    """Every question, `turns` times after one that does not count."""
    store = open_store(RealFiles(), store_root)
    batch = resolve_batch(store, None)
    table = _make_table(BatchRecords(store, batch), database)
    (count,) = table.execute("select count(*) from records").fetchone()
    found = [_take_turns(*question, turns) for question in _questions(store, batch, table)]
    outputs = sum(path.stat().st_size for path in batch.root.glob("outputs/*/*/*"))
    index = sum(path.stat().st_size for path in (store.root / "indexes" / batch.id).glob("*/*"))
    return Answers(count, outputs + index, database.stat().st_size, found)


def _make_table(records: BatchRecords, database: Path) -> sqlite3.Connection:
    table = sqlite3.connect(database)
    table.execute(f"create table records ({', '.join(_COLUMNS)})")
    row = f"insert into records values ({', '.join('?' * len(_COLUMNS))})"
    for task in records.task_names:
        for piece in records.source.iter_pieces(task):
            table.executemany(row, (each for block in piece.read() for each in _rows(block)))
    for place, columns in enumerate(_INDEXES):
        table.execute(f"create index index_{place} on records ({columns})")
    table.commit()
    table.execute("analyze")
    return table


def _rows(block: bytes) -> Iterator[tuple[object, ...]]:
    for line, record in zip(block.splitlines(), decode_records(block), strict=True):
        told = {**record, "path": record_path(record), "target": last_name(record.get("target")), "doc": line}
        yield tuple(told.get(column) for column in _COLUMNS)


def _questions(
    store: StoreDir, batch: BatchDir, table: sqlite3.Connection
) -> Iterator[tuple[str, float | None, Side, Side]]:
    records = BatchRecords(store, batch, lambda _: None)
    index = open_index(store, batch.id)
    assert index is not None
    chance = random.Random(0)

    def ask(question: str, *values: object) -> list[tuple[object, ...]]:
        return table.execute(question, values).fetchall()

    def some(column: str) -> list[str]:
        every = [str(value) for (value,) in ask(f"select distinct {column} from records where {column} is not null")]
        return chance.sample(sorted(every), min(SCATTERED, len(every)))

    names, paths = some("name"), some("path")
    code = str(ask("select code from records where code is not null group by code order by count(*) desc")[0][0])
    lookups = [keys.make_lookup(keys.SYMBOL_TAG, name) for name in names]
    prefixes = [keys.make_lookup(keys.SYMBOL_TAG, f"{name[:4]}*") for name in names]
    yield (
        f"postings of {len(names)} names",
        1,
        lambda: [index.find([lookup]) for lookup in lookups],
        lambda: [ask("select rowid from records where name = ?", name) for name in names],
    )
    yield (
        f"postings of {len(names)} prefixes of 4 letters",
        1,
        lambda: [index.find([lookup]) for lookup in prefixes],
        lambda: [
            ask("select rowid from records where name >= ? and name < ?", name[:4], name[:4] + "\U0010ffff")
            for name in names
        ],
    )
    for what, asked, question, value in (
        ("a name", RecordFilter(names=(names[0],)), "select doc from records where name = ?", names[0]),
        ("a code", RecordFilter(codes=(code,)), "select doc from records where code = ?", code),
    ):
        yield f"records of {what}", None, _reading(records, asked), lambda q=question, v=value: ask(q, v)  # type: ignore[misc]
    yield (
        "records of a path",
        None,
        lambda: [
            records.item_records(task, item) for item in _items(records, paths[:1]) for task in records.task_names
        ],
        lambda: ask("select doc from records where path = ?", paths[0]),
    )
    for field, asked, where in (
        ("kind", RecordFilter(), "1"),
        ("severity", RecordFilter(kinds=("diagnostic",)), "kind = 'diagnostic'"),
        ("code", RecordFilter(kinds=("diagnostic",)), "kind = 'diagnostic'"),
        ("code", RecordFilter(severities=("error",)), "severity = 'error'"),
        ("symbol_type", RecordFilter(kinds=("symbol",)), "kind = 'symbol'"),
        ("path", RecordFilter(kinds=("metric",)), "kind = 'metric'"),
    ):
        yield (
            f"count by {field} where {where}" if where != "1" else f"count by {field}",
            1 if field in ("kind", "severity", "code") else 10,
            lambda field=field, asked=asked: count_records(records, records.task_names, asked, field),  # type: ignore[misc]
            lambda field=field, where=where: ask(  # type: ignore[misc]
                f"select {field}, count(*) from records where {where} group by {field}"
            ),
        )
    drawn = ask("select rowid, path, name from records where name is not null order by random() limit ?", SCATTERED)
    yield (
        f"{len(drawn)} scattered records",
        10,
        _scattered(records, index, [(str(path), str(name)) for _, path, name in drawn]),
        lambda: [ask("select doc from records where rowid = ?", row) for row, _, _ in drawn],
    )


def _reading(records: BatchRecords, asked: RecordFilter) -> Side:
    return lambda: list(records.iter_by_path(records.task_names, asked))


def _items(records: BatchRecords, paths: Sequence[str]) -> Sequence[int]:
    return list(records.find_items([path.encode() for path in paths]).values())


def _scattered(records: BatchRecords, index: BatchIndex, drawn: Sequence[tuple[str, str]]) -> Side:
    """Decode the symbols of some names at some paths, out of the frames that hold them.

    These are known beforehand, as sqlite knows its rows: of the frames that are posted for a name those of its path.
    """
    outputs = records.source.outputs
    assert outputs is not None
    output = outputs.manifest.task_output("symbols")
    assert output is not None
    items = records.find_items({path.encode() for path, _ in drawn})
    shard_starts = [shard.start for shard in records.plan.shards]
    wanted: dict[int, dict[int, set[tuple[str, str]]]] = {}
    for path, name in drawn:
        item = items[path.encode()]
        place = bisect_right(shard_starts, item) - 1
        trailer = outputs.trailer(output, place)
        start, end = item_range(trailer.table, item - shard_starts[place])
        posted = index.narrow_frames(output, [keys.make_lookup(keys.SYMBOL_TAG, name)])[place]
        for frame in range(bisect_right(trailer.starts, start) - 1, bisect_left(trailer.starts, end)):
            if posted is None or frame in posted:
                wanted.setdefault(place, {}).setdefault(frame, set()).add((path, name))
    by_shard = [
        (place, frames, [(RecordFilter(names=tuple({name for _, name in of[frame]})), of[frame]) for frame in frames])
        for place, of in sorted(wanted.items())
        if (frames := sorted(of))
    ]

    def read() -> list[object]:
        return [
            [each for each in asked.iter_matching((lines,)) if (record_path(each), each["name"]) in pairs]
            for place, frames, filters in by_shard
            for lines, (asked, pairs) in zip(outputs.iter_frames(output, place, frames), filters, strict=True)
        ]

    return read


def _take_turns(what: str, limit: float | None, ours: Side, theirs: Side, turns: int) -> Compared:
    taken: tuple[list[float], list[float]] = ([], [])
    for turn in range(turns + 1):
        for side, seconds in zip((ours, theirs), taken, strict=True):
            began = time.process_time()
            side()
            if turn:
                seconds.append(time.process_time() - began)
    return Compared(what, limit, *taken)


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(compare(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))))
