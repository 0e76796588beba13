"""Numbers about files and functions, found by their bytes among all that a task says, so that few lines are decoded."""

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
"""The tasks that give numbers; `analyze` gives the others."""
_ANALYZE = "analyze"
_METRICS = RecordFilter(kinds=("metric",))
_FUNCTION = b'"metric":"%b","value":([0-9]{%d,}),"symbol":'


class Number(RecordOfFile, frozen=True, kw_only=True, gc=False):
    """A metric of a file, or of the function of a qualified name that begins at a line."""

    metric: str
    value: int
    symbol: str = ""
    line: int = 1


@cache
def _decoder() -> msgspec.json.Decoder[Number]:
    return msgspec.json.Decoder(Number)


def task_of(metric: str) -> str:
    """The task that gives a metric."""
    return IN_TASKS.get(metric, _ANALYZE)


def numbers_of_files(records: BatchRecords, metrics: Collection[str]) -> dict[str, dict[bytes, int]]:
    """Some metrics of each file that has them, by metric; without those of tasks that the batch lacks.

    Raises StoreCorrupt.
    """
    told = [metric for metric in metrics if task_of(metric) in records.task_names]
    found: dict[str, dict[bytes, int]] = {metric: {} for metric in told}
    for task in dict.fromkeys(map(task_of, told)):
        names = b"|".join(metric.encode() for metric in told if task_of(metric) == task)
        pattern = re.compile(b'"metric":"(?:%b)","value":[0-9]+}' % names)
        for piece in records.pieces(task, _METRICS, ()):
            for block in records.read(piece):
                for number in _decoded(block, [match.start() for match in pattern.finditer(block)]):
                    found[number.metric][number.path_bytes] = number.value
    return found


def files_above(records: BatchRecords, metric: str, value: int) -> list[bytes]:
    """The files of which a metric is greater than a value. Raises StoreCorrupt."""
    pattern = re.compile(b'"metric":"%b","value":([0-9]{%d,})}' % (metric.encode(), len(str(value))))
    found: list[bytes] = []
    for piece in records.pieces(task_of(metric), _METRICS, (look_for_metric(metric, value + 1, None),)):
        for block in records.read(piece):
            places = [match.start() for match in pattern.finditer(block) if int(match[1]) > value]
            found += [each.path_bytes for each in _decoded(block, places)]
    return found


def iter_functions(
    records: BatchRecords, metric: str, least: int, above: Callable[[], float], files: Iterable[bytes] | None = None
) -> Iterator[Number]:
    """A metric of functions, where it is `least` or more, and more than `above` says by then; of some files, or of all.

    Raises StoreCorrupt.
    """
    for block in _blocks(records, task_of(metric), files):
        bound = max(above(), least - 1)
        digits = len(str(max(int(bound), 1)))  # Most values are small, and not even looked at.
        found = re.finditer(_FUNCTION % (metric.encode(), digits), block)
        numbers = _decoded(block, [match.start() for match in found if int(match[1]) > bound])
        records.reading.matched += len(numbers)
        yield from numbers


def _blocks(records: BatchRecords, task: str, files: Iterable[bytes] | None) -> Iterator[bytes]:
    """What a task says of some files, or of all: whole lines."""
    if files is None:
        yield from chain.from_iterable(map(records.read, records.pieces(task, _METRICS, ())))
        return
    for item in records.find_items(files).values():
        records.reading.shards += 1
        records.reading.note(1)
        yield records.source.item_lines(task, item) or b""


def _decoded(block: bytes, places: Collection[int]) -> list[Number]:
    """The numbers in whose lines some places are."""
    return decode_lines(_decoder(), b"\n".join([line_at(block, at) for at in places])) if places else []
