"""Metrics of files and functions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache
from itertools import chain

import msgspec

from codebatch.query.filters.decoding import RecordPath, decode_lines
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.filters.line_prefilter import lines_with_marks
from codebatch.query.sources.records import BatchRecords

_TASK_BY_METRIC = {
    **dict.fromkeys(("dependencies", "dependents", "cycle"), "dependencies"),
    **dict.fromkeys(("duplicated_lines", "duplicated_blocks"), "duplicates"),
}
"""For each metric that `analyze` does not compute, the task that computes it."""
_ANALYZE_TASK = "analyze"


class MetricValue(RecordPath, frozen=True, kw_only=True, gc=False):
    """A metric of a file, or of a function, which is identified by its qualified name and its first line.

    Records of other types are decoded as this type too; their `metric` is empty.
    """

    metric: str = ""
    value: int = 0
    symbol: str = ""
    line: int = 1


@cache
def _metric_decoder() -> msgspec.json.Decoder[MetricValue]:
    return msgspec.json.Decoder(MetricValue)


def metric_task(metric: str) -> str:
    """Return the name of the task that computes a metric."""
    return _TASK_BY_METRIC.get(metric, _ANALYZE_TASK)


def read_file_metrics(records: BatchRecords, metrics: Collection[str]) -> dict[str, dict[bytes, int]]:
    """Return the values of some metrics, by metric and path.

    If the batch did not run the task of a metric, the metric is left out. Raises StoreCorrupt.
    """
    values: dict[str, dict[bytes, int]] = {
        metric: {} for metric in metrics if metric_task(metric) in records.task_names
    }
    for task in dict.fromkeys(map(metric_task, values)):
        wanted = {metric: by_path for metric, by_path in values.items() if metric_task(metric) == task}
        marks = re.compile(b'"metric":"(?:%b)","value":[0-9]+}' % "|".join(wanted).encode())
        for block in _metric_blocks(records, task):
            for number in decode_lines(_metric_decoder(), lines_with_marks(marks, block)):
                if not number.symbol and number.metric in wanted:
                    wanted[number.metric][number.path_bytes] = number.value
    return values


def iter_functions(records: BatchRecords, metric: str, least: int) -> Iterator[MetricValue]:
    """Yield the metric records of functions for one metric, if the value is at least `least`. Raises StoreCorrupt."""
    for block in _metric_blocks(records, metric_task(metric)):
        numbers = (
            number for number in decode_lines(_metric_decoder(), block) if number.symbol and number.metric == metric
        )
        matching = [number for number in numbers if number.value >= least]
        records.reading.matched += len(matching)
        yield from matching


def _metric_blocks(records: BatchRecords, task: str) -> Iterator[bytes]:
    pieces = records.pieces(task, RecordFilter(kinds=("metric",)), ())
    return chain.from_iterable(map(records.read, pieces))
