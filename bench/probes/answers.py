"""Compare queries of an open batch with queries of an SQLite table.

`python -m bench.probes.answers STORE DATABASE TURNS` prints the result as JSON. The table has a row for each record,
with its text, and five indexes like ours. Both sides are open and warm, and they take turns. Seconds are CPU seconds,
because no side waits for a disk.
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
    """Seconds of each turn of a query, on both sides. Ours should be at most `limit` times those of SQLite."""

    what: str
    limit: float | None
    ours: list[float]
    sqlite: list[float]


class Answers(msgspec.Struct, frozen=True):
    """The number of records, the size of both sides' files, and the seconds that the queries took."""

    records: int
    ours_bytes: int
    sqlite_bytes: int
    compared: list[Compared]


Side = Callable[[], object]


def compare(store_root: Path, database: Path, turns: int) -> Answers:
    """Measure every query `turns` times after one unmeasured turn."""
    store = open_store(RealFiles(), store_root)
    batch = resolve_batch(store, None)
    table = _make_table(BatchRecords(store, batch), database)
    (count,) = table.execute("select count(*) from records").fetchone()
    comparisons = [_take_turns(*question, turns) for question in _questions(store, batch, table)]
    outputs = sum(path.stat().st_size for path in batch.root.glob("outputs/*/*/*"))
    index = sum(path.stat().st_size for path in (store.root / "indexes" / batch.id).glob("*/*"))
    return Answers(count, outputs + index, database.stat().st_size, comparisons)


def _make_table(records: BatchRecords, database: Path) -> sqlite3.Connection:
    table = sqlite3.connect(database)
    table.execute(f"create table records ({', '.join(_COLUMNS)})")
    row = f"insert into records values ({', '.join('?' * len(_COLUMNS))})"
    for task in records.task_names:
        for piece in records.source.iter_pieces(task):
            table.executemany(row, (row_values for block in piece.read() for row_values in _rows(block)))
    for place, columns in enumerate(_INDEXES):
        table.execute(f"create index index_{place} on records ({columns})")
    table.commit()
    table.execute("analyze")
    return table


def _rows(block: bytes) -> Iterator[tuple[object, ...]]:
    for line, record in zip(block.splitlines(), decode_records(block), strict=True):
        fields = {**record, "path": record_path(record), "target": last_name(record.get("target")), "doc": line}
        yield tuple(fields.get(column) for column in _COLUMNS)


def _questions(
    store: StoreDir, batch: BatchDir, table: sqlite3.Connection
) -> Iterator[tuple[str, float | None, Side, Side]]:
    records = BatchRecords(store, batch, lambda _: None)
    index = open_index(store, batch.id)
    assert index is not None
    generator = random.Random(0)

    def ask(question: str, *values: object) -> list[tuple[object, ...]]:
        return table.execute(question, values).fetchall()

    def some(column: str) -> list[str]:
        every = [str(value) for (value,) in ask(f"select distinct {column} from records where {column} is not null")]
        return generator.sample(sorted(every), min(SCATTERED, len(every)))

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
    for what, chosen, question, value in (
        ("a name", RecordFilter(names=(names[0],)), "select doc from records where name = ?", names[0]),
        ("a code", RecordFilter(codes=(code,)), "select doc from records where code = ?", code),
    ):
        yield f"records of {what}", None, _reading(records, chosen), lambda q=question, v=value: ask(q, v)  # type: ignore[misc]
    yield (
        "records of a path",
        None,
        lambda: [
            records.item_records(task, item) for item in _items(records, paths[:1]) for task in records.task_names
        ],
        lambda: ask("select doc from records where path = ?", paths[0]),
    )
    for field, chosen, where in (
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
            lambda field=field, chosen=chosen: count_records(records, records.task_names, chosen, field),  # type: ignore[misc]
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


def _reading(records: BatchRecords, record_filter: RecordFilter) -> Side:
    return lambda: list(records.iter_by_path(records.task_names, record_filter))


def _items(records: BatchRecords, paths: Sequence[str]) -> Sequence[int]:
    return list(records.find_items([path.encode() for path in paths]).values())


def _scattered(records: BatchRecords, index: BatchIndex, drawn: Sequence[tuple[str, str]]) -> Side:
    """Decode the symbols with some names at some paths from the frames that contain them.

    The frames are determined in advance, as SQLite knows its rows: the frames of the path that the index lists for the
    name.
    """
    outputs = records.source.outputs
    assert outputs is not None
    output = outputs.manifest.task_output("symbols")
    assert output is not None
    items = records.find_items({path.encode() for path, _ in drawn})
    shard_starts = [shard.start for shard in records.plan.shards]
    pairs_by_frame: dict[int, dict[int, set[tuple[str, str]]]] = {}
    for path, name in drawn:
        item = items[path.encode()]
        place = bisect_right(shard_starts, item) - 1
        trailer = outputs.trailer(output, place)
        start, end = item_range(trailer.table, item - shard_starts[place])
        posted = index.narrow_frames(output, [keys.make_lookup(keys.SYMBOL_TAG, name)])[place]
        for frame in range(bisect_right(trailer.starts, start) - 1, bisect_left(trailer.starts, end)):
            if posted is None or frame in posted:
                pairs_by_frame.setdefault(place, {}).setdefault(frame, set()).add((path, name))
    by_shard = [
        (
            place,
            frames,
            [(RecordFilter(names=tuple({name for _, name in by_frame[frame]})), by_frame[frame]) for frame in frames],
        )
        for place, by_frame in sorted(pairs_by_frame.items())
        if (frames := sorted(by_frame))
    ]

    def read() -> list[object]:
        return [
            [
                record
                for record in record_filter.iter_matching((lines,))
                if (record_path(record), record["name"]) in pairs
            ]
            for place, frames, filters in by_shard
            for lines, (record_filter, pairs) in zip(outputs.iter_frames(output, place, frames), filters, strict=True)
        ]

    return read


def _take_turns(what: str, limit: float | None, ours: Side, theirs: Side, turns: int) -> Compared:
    seconds_by_side: tuple[list[float], list[float]] = ([], [])
    for turn in range(turns + 1):
        for side, seconds in zip((ours, theirs), seconds_by_side, strict=True):
            began = time.process_time()
            side()
            if turn:
                seconds.append(time.process_time() - began)
    return Compared(what, limit, *seconds_by_side)


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(compare(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))))
