"""Metrics of files and functions. A search in the bytes of records finds them, so that few lines are decoded."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from itertools import chain

import msgspec

from codebatch.index.keys import look_for_metric
from codebatch.query.filters.decoding import RecordOfFile, decode_lines, line_at
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.sources.records import BatchRecords

IN_TASKS = {"dependents": "dependencies", "cycle": "dependencies", "duplicated_lines": "duplicates"}
"""The task of each metric that `analyze` does not compute."""
_ANALYZE = "analyze"
_METRICS = RecordFilter(kinds=("metric",))
_FUNCTION = b'"metric":"%b","value":([0-9]{%d,}),"symbol":'


class Number(RecordOfFile, frozen=True, kw_only=True, gc=False):
    """A metric of a file, or of a function, which is identified by its qualified name and its first line."""

    metric: str
    value: int
    symbol: str = ""
    line: int = 1


@cache
def _decoder() -> msgspec.json.Decoder[Number]:
    return msgspec.json.Decoder(Number)


def task_of(metric: str) -> str:
    """Return the name of the task that computes a metric."""
    return IN_TASKS.get(metric, _ANALYZE)


def numbers_of_files(records: BatchRecords, metrics: Collection[str]) -> dict[str, dict[bytes, int]]:
    """Return the values of some metrics, by metric and path.

    Metrics of tasks that the batch did not run are left out.

    Raises StoreCorrupt.
    """
    available = [metric for metric in metrics if task_of(metric) in records.task_names]
    values: dict[str, dict[bytes, int]] = {metric: {} for metric in available}
    for task in dict.fromkeys(map(task_of, available)):
        names = b"|".join(metric.encode() for metric in available if task_of(metric) == task)
        pattern = re.compile(b'"metric":"(?:%b)","value":[0-9]+}' % names)
        for piece in records.pieces(task, _METRICS, ()):
            for block in records.read(piece):
                for number in _decode_numbers_at(block, [match.start() for match in pattern.finditer(block)]):
                    values[number.metric][number.path_bytes] = number.value
    return values


def files_above(records: BatchRecords, metric: str, value: int) -> list[bytes]:
    """Return the files whose value of a metric is greater than `value`. Raises StoreCorrupt."""
    pattern = re.compile(b'"metric":"%b","value":([0-9]{%d,})}' % (metric.encode(), len(str(value))))
    paths: list[bytes] = []
    for piece in records.pieces(task_of(metric), _METRICS, (look_for_metric(metric, value + 1, None),)):
        for block in records.read(piece):
            positions = [match.start() for match in pattern.finditer(block) if int(match[1]) > value]
            paths += [number.path_bytes for number in _decode_numbers_at(block, positions)]
    return paths


def iter_functions(
    records: BatchRecords, metric: str, least: int, above: Callable[[], float], files: Iterable[bytes] | None = None
) -> Iterator[Number]:
    """Yield the values of a metric of functions that are at least `least` and greater than the result of `above`.

    `files` restricts the files. Raises StoreCorrupt.
    """
    for block in _blocks(records, task_of(metric), files):
        bound = max(above(), least - 1)
        digits = len(str(max(int(bound), 1)))  # Most values have few digits, so that the pattern skips them.
        matches = re.finditer(_FUNCTION % (metric.encode(), digits), block)
        numbers = _decode_numbers_at(block, [match.start() for match in matches if int(match[1]) > bound])
        records.reading.matched += len(numbers)
        yield from numbers


def _blocks(records: BatchRecords, task: str, files: Iterable[bytes] | None) -> Iterator[bytes]:
    """Yield the record lines of a task for some files, or for all, in blocks of whole lines."""
    if files is None:
        yield from chain.from_iterable(map(records.read, records.pieces(task, _METRICS, ())))
        return
    for item in records.find_items(files).values():
        records.reading.shards += 1
        records.reading.note(1)
        yield records.source.item_lines(task, item) or b""


def _decode_numbers_at(block: bytes, positions: Collection[int]) -> list[Number]:
    """Decode the record lines that contain some positions of a block."""
    return (
        decode_lines(_decoder(), b"\n".join([line_at(block, position) for position in positions])) if positions else []
    )
