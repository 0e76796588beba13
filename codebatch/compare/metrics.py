"""What became of the numbers of two trees: of each file, and of each function, the one of its name.

A metric is known by the file, the function and its name. Of several functions of one name in a file (overloads,
closures without a name) each is that on the same line of both texts, then the next in order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from codebatch.compare.differences import Change
from codebatch.compare.places import FileMap, FilePlaces, iter_files, pair_places
from codebatch.compare.states import State
from codebatch.model.entry import path_fields
from codebatch.model.record import Metric

# Of all others more is neither better nor worse: they say how large something is, as do a file's sums, `complexity` and
# `cognitive`, which each new function raises; or they are of a task of which only its author knows.
WORSE_OF_FUNCTIONS = frozenset({"complexity", "cognitive", "nesting", "parameters"})
OF_TREES = WORSE_OF_FUNCTIONS | {"max_complexity", "max_cognitive", "max_nesting", "max_parameters"}
_WORSE_OF_FILES = (OF_TREES - WORSE_OF_FUNCTIONS) | {"duplicated_lines", "duplicated_blocks", "cycle"}
# These are not told where they are 0 (workers/TASKS.md "Metrics"), if what they rest on could be counted at all:
# then a function has a complexity, and a file has the number of its functions.
UNLESS_0 = WORSE_OF_FUNCTIONS | _WORSE_OF_FILES | {"dependencies", "dependents"}
_COUNTED = {True: "complexity", False: "functions"}


class ImplicitZeroMetric(Metric, frozen=True, kw_only=True, tag="metric"):
    """A metric of which a batch has no record, for it is 0."""


def is_worse_when_more(metric: Metric) -> bool:
    """Whether it is known of a metric that more of it is worse. Of none it is known that less is."""
    return metric.metric in (WORSE_OF_FUNCTIONS if metric.symbol else _WORSE_OF_FILES)


def compare_metrics(
    old: Mapping[bytes, Sequence[Metric]], new: Mapping[bytes, Sequence[Metric]], files: FileMap
) -> Iterator[Change]:
    """What became of each metric, by path, symbol and line; those that are equal too."""
    for each in iter_files(old, new, files):
        theirs = _by_symbol(each.new)
        ours = _by_symbol(each.old)
        for symbol in sorted({*ours, *theirs}):
            yield from _compare_symbol(symbol, each, ours.get(symbol, {}), theirs.get(symbol, {}))


_Numbers = dict[str, list[Metric]]


def _by_symbol(metrics: Sequence[Metric]) -> Mapping[str, Mapping[int, _Numbers]]:
    found: dict[str, dict[int, _Numbers]] = defaultdict(dict)
    for metric in metrics:
        found[metric.symbol].setdefault(metric.line, {}).setdefault(metric.metric, []).append(metric)
    return found


def _compare_symbol(
    symbol: str, each: FilePlaces[Metric], old: Mapping[int, _Numbers], new: Mapping[int, _Numbers]
) -> Iterator[Change]:
    if not (symbol or each.old_path is None or each.new_path is None):
        # A file is one, be there anything that is not 0 or not.
        old, new = old or {1: {}}, new or {1: {}}
    ours, theirs = sorted(old), sorted(new)
    pairs, left, right = pair_places(ours, theirs, each.lines, are_heads=True)
    for one, other in pairs:
        places = _MetricPlace(each.old_path, ours[one]), _MetricPlace(each.new_path, theirs[other])
        yield from _compare_numbers(old[ours[one]], new[theirs[other]], *places)
    for place in left:
        yield from (Change("removed", metric, None) for metric in _each(old[ours[place]]))
    for place in right:
        yield from (Change("added", None, metric) for metric in _each(new[theirs[place]]))


class _MetricPlace(NamedTuple):
    """Where numbers stand, or would stand. A file of which there are any has a path."""

    path: bytes | None
    line: int

    def nought_of(self, metric: Metric) -> ImplicitZeroMetric:
        """A metric as it is here, where it is 0."""
        assert self.path is not None, "a function of the other file is one of this one"
        path, path_b64 = path_fields(self.path)
        return ImplicitZeroMetric(
            path=path, path_b64=path_b64, metric=metric.metric, value=0, symbol=metric.symbol, line=self.line
        )


def _each(numbers: _Numbers) -> Iterator[Metric]:
    for metrics in numbers.values():
        yield from metrics


def _compare_numbers(
    old: _Numbers, new: _Numbers, old_place: _MetricPlace, new_place: _MetricPlace
) -> Iterator[Change]:
    for name in dict.fromkeys((*old, *new)):
        for one, other in zip_longest(old.get(name, ()), new.get(name, ())):
            if one is None or other is None:
                metric = one or other
                assert metric is not None, "one of them is there"
                if not _is_told_unless_0(metric, old, new):
                    yield Change("added" if one is None else "removed", one, other)
                    continue
                one, other = one or old_place.nought_of(metric), other or new_place.nought_of(metric)
            yield Change(_state(one, other), one, other)


def _is_told_unless_0(metric: Metric, old: _Numbers, new: _Numbers) -> bool:
    """Whether a metric of one side alone is 0 on the other."""
    counted = _COUNTED[bool(metric.symbol)]
    return metric.metric in UNLESS_0 and (counted in old) == (counted in new)


def _state(old: Metric, new: Metric) -> State:
    if old.value == new.value:
        return "unchanged"
    if not is_worse_when_more(old):
        return "changed"
    return "worsened" if new.value > old.value else "improved"
