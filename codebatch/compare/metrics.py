"""Comparison of the metrics of files and functions of two trees.

A metric is identified by its file, function and name. A file can have several functions of the same name, for example
overloads or unnamed closures. Such functions are matched by matching lines first, and the remaining ones in order.

Functions that were moved, renamed or put into a class are matched by moved_functions.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from codebatch.compare.differences import Change
from codebatch.compare.moved_functions import (
    FunctionBodyReader,
    MeasuredFunction,
    MetricsByName,
    match_moved_functions,
)
from codebatch.compare.places import FileMap, FilePlaces, iter_files, pair_places
from codebatch.compare.states import ChangeState
from codebatch.model.entry import path_fields
from codebatch.model.record import Metric

# A greater value of these metrics is worse. All other metrics of functions and files only measure size. Examples are
# the sums `complexity` and `cognitive` of a file, which every new function increases. The meaning of metrics of custom
# tasks is unknown.
WORSE_FUNCTION_METRICS = frozenset({"complexity", "cognitive", "nesting", "parameters"})
SYNTAX_TREE_METRICS = WORSE_FUNCTION_METRICS | {"max_complexity", "max_cognitive", "max_nesting", "max_parameters"}
# Metrics of relations between files. A new file without such a relation has the value 0.
RELATION_METRICS = frozenset({"cycle", "duplicated_blocks", "duplicated_lines"})
_WORSE_FILE_METRICS = (SYNTAX_TREE_METRICS - WORSE_FUNCTION_METRICS) | RELATION_METRICS
# Metrics that have no record if they are 0 (workers/TASKS.md "Metrics"). They are known to be 0 only if another record
# exists: `complexity` for a function, `functions` for a file.
METRICS_OMITTED_IF_0 = WORSE_FUNCTION_METRICS | _WORSE_FILE_METRICS | {"dependencies", "dependents"}
_COUNT_METRIC_BY_KIND = {True: "complexity", False: "functions"}


class ImplicitZeroMetric(Metric, frozen=True, kw_only=True, tag="metric"):
    """A metric that has no record in a batch, because its value is 0."""


def is_worse_when_more(metric: Metric) -> bool:
    """Return whether a greater value of a metric is known to be worse.

    No metric is known to be better with a greater value.
    """
    return metric.metric in (WORSE_FUNCTION_METRICS if metric.symbol else _WORSE_FILE_METRICS)


def compare_metrics(
    old: Mapping[bytes, Sequence[Metric]],
    new: Mapping[bytes, Sequence[Metric]],
    files: FileMap,
    read_body: FunctionBodyReader = lambda _: (),
) -> Iterator[Change]:
    """Yield a change for each metric. Unchanged metrics are included.

    First come the metrics of matching functions and files, sorted by path, symbol and line, then those of functions
    that moved, then all others.
    """
    removed: list[MeasuredFunction] = []
    added: list[MeasuredFunction] = []
    for file in iter_files(old, new, files):
        new_metrics = _group_by_symbol(file.new)
        old_metrics = _group_by_symbol(file.old)
        for symbol in sorted({*old_metrics, *new_metrics}):
            groups = old_metrics.get(symbol, {}), new_metrics.get(symbol, {})
            yield from _compare_symbol(symbol, file, *groups, removed, added)
    moved = match_moved_functions(removed, added, files, read_body)
    for one, other in moved:
        places = _MetricPlace(one.path, one.line), _MetricPlace(other.path, other.line)
        yield from _compare_numbers(one.numbers, other.numbers, *places)
    matched = {id(function) for pair in moved for function in pair}
    yield from (Change("removed", metric, None) for one in removed if id(one) not in matched for metric in one.metrics)
    yield from (
        Change("added", None, metric) for other in added if id(other) not in matched for metric in other.metrics
    )


def _group_by_symbol(metrics: Sequence[Metric]) -> Mapping[str, Mapping[int, MetricsByName]]:
    metrics_by_symbol: dict[str, dict[int, MetricsByName]] = defaultdict(dict)
    for metric in metrics:
        metrics_by_symbol[metric.symbol].setdefault(metric.line, {}).setdefault(metric.metric, []).append(metric)
    return metrics_by_symbol


def _compare_symbol(
    symbol: str,
    file: FilePlaces[Metric],
    old: Mapping[int, MetricsByName],
    new: Mapping[int, MetricsByName],
    removed: list[MeasuredFunction],
    added: list[MeasuredFunction],
) -> Iterator[Change]:
    """Yield the changes of the functions with a qualified name in a file. Append those without a match to the lists."""
    if not (symbol or file.old_path is None or file.new_path is None):
        # If one side has no metrics of a file, they may all be 0. So the file is compared even then.
        old, new = old or {1: {}}, new or {1: {}}
    old_lines, new_lines = sorted(old), sorted(new)
    pairs, unpaired_old, unpaired_new = pair_places(old_lines, new_lines, file.matching_lines, are_heads=True)
    for one, other in pairs:
        places = _MetricPlace(file.old_path, old_lines[one]), _MetricPlace(file.new_path, new_lines[other])
        yield from _compare_numbers(old[old_lines[one]], new[new_lines[other]], *places)
    lines_of_sides = [old_lines[index] for index in unpaired_old], [new_lines[index] for index in unpaired_new]
    removed += (MeasuredFunction("old", file.old_path or b"", symbol, line, old[line]) for line in lines_of_sides[0])
    added += (MeasuredFunction("new", file.new_path or b"", symbol, line, new[line]) for line in lines_of_sides[1])


class _MetricPlace(NamedTuple):
    """The location of metrics that have a record or are implicitly 0. `path` is set if there are any metrics."""

    path: bytes | None
    line: int

    def make_zero(self, metric: Metric) -> ImplicitZeroMetric:
        """Return a metric with the value 0 at this location."""
        assert self.path is not None, "a function of the other file is one of this one"
        path, path_b64 = path_fields(self.path)
        return ImplicitZeroMetric(
            path=path, path_b64=path_b64, metric=metric.metric, value=0, symbol=metric.symbol, line=self.line
        )


def _compare_numbers(
    old: MetricsByName, new: MetricsByName, old_place: _MetricPlace, new_place: _MetricPlace
) -> Iterator[Change]:
    for name in dict.fromkeys((*old, *new)):
        for one, other in zip_longest(old.get(name, ()), new.get(name, ())):
            if one is None or other is None:
                metric = one or other
                assert metric is not None, "one of them is there"
                if not _is_implicit_zero(metric, old, new):
                    yield Change("added" if one is None else "removed", one, other)
                    continue
                one, other = one or old_place.make_zero(metric), other or new_place.make_zero(metric)
            yield Change(_metric_state(one, other), one, other)


def _is_implicit_zero(metric: Metric, old: MetricsByName, new: MetricsByName) -> bool:
    """Return whether a metric that has a record on only one side is 0 on the other side."""
    counted = _COUNT_METRIC_BY_KIND[bool(metric.symbol)]
    return metric.metric in METRICS_OMITTED_IF_0 and (counted in old) == (counted in new)


def _metric_state(old: Metric, new: Metric) -> ChangeState:
    if old.value == new.value:
        return "unchanged"
    if not is_worse_when_more(old):
        return "changed"
    return "worsened" if new.value > old.value else "improved"
