"""What became of the numbers of two trees: of each file, and of each function, the one of its name.

A metric is known by the file, the function and its name. Of several functions of one name in a file (overloads,
closures without a name) each is that on the same line of both texts, then the next in order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from codebatch.compare.differences import Difference
from codebatch.compare.places import FileMap, OfFile, iter_files, pair_places
from codebatch.compare.states import State
from codebatch.model.record import Metric

# Of all others more is neither better nor worse: they say how large something is, as do a file's sums, `complexity` and
# `cognitive`, which each new function raises; or they are of a task of which only its author knows.
WORSE_OF_FUNCTIONS = frozenset({"complexity", "cognitive", "nesting", "parameters"})
_WORSE_OF_FILES = frozenset(
    {
        "max_complexity",
        "max_cognitive",
        "max_nesting",
        "max_parameters",
        "duplicated_lines",
        "duplicated_blocks",
        "cycle",
    }
)
# These are not told where they are 0 (workers/TASKS.md "Metrics"), if what they rest on could be counted at all:
# then a function has a complexity, and a file has code.
UNLESS_0 = WORSE_OF_FUNCTIONS | _WORSE_OF_FILES | {"dependencies", "dependents"}
_COUNTED = {True: "complexity", False: "code"}


def is_worse_when_more(metric: Metric) -> bool:
    """Whether it is known of a metric that more of it is worse. Of none it is known that less is."""
    return metric.metric in (WORSE_OF_FUNCTIONS if metric.symbol else _WORSE_OF_FILES)


def compare_metrics(
    old: Mapping[bytes, Sequence[Metric]], new: Mapping[bytes, Sequence[Metric]], files: FileMap
) -> Iterator[Difference]:
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
    symbol: str, each: OfFile[Metric], old: Mapping[int, _Numbers], new: Mapping[int, _Numbers]
) -> Iterator[Difference]:
    if not (symbol or each.old_path is None or each.new_path is None):
        # A file is one, be there anything that is not 0 or not.
        old, new = old or {1: {}}, new or {1: {}}
    ours, theirs = sorted(old), sorted(new)
    pairs, left, right = pair_places(ours, theirs, each.lines)
    for one, other in pairs:
        yield from _compare_numbers(old[ours[one]], new[theirs[other]])
    for place in left:
        yield from (Difference("removed", metric, None) for metric in _each(old[ours[place]]))
    for place in right:
        yield from (Difference("added", None, metric) for metric in _each(new[theirs[place]]))


def _each(numbers: _Numbers) -> Iterator[Metric]:
    for metrics in numbers.values():
        yield from metrics


def _compare_numbers(old: _Numbers, new: _Numbers) -> Iterator[Difference]:
    for name in dict.fromkeys((*old, *new)):
        for one, other in zip_longest(old.get(name, ()), new.get(name, ())):
            yield Difference(_state(one, other, old, new), one, other)


def _state(old: Metric | None, new: Metric | None, ours: _Numbers, theirs: _Numbers) -> State:
    metric = old or new
    assert metric is not None, "one of them is there"
    if old is None or new is None:
        counted = _COUNTED[bool(metric.symbol)]
        if metric.metric not in UNLESS_0 or (counted in ours) != (counted in theirs):
            return "added" if old is None else "removed"
    less, more = (0 if each is None else each.value for each in (old, new))
    if less == more:
        return "unchanged"
    if not is_worse_when_more(metric):
        return "changed"
    return "worsened" if more > less else "improved"
