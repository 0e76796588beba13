"""Matching of functions that were moved, renamed, or put into another scope.

A function without a match by its qualified name matches a function with the same body. Otherwise, it matches one with
the same simple name and at least half of its lines, in the same file first. Both functions must be unique.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import chain
from typing import Literal, NamedTuple

from codebatch.compare.places import FileMap
from codebatch.model.record import Metric

MetricsByName = dict[str, list[Metric]]


class MeasuredFunction(NamedTuple):
    """A function in the old or the new tree, or a file if `symbol` is empty, with all its metrics by name."""

    side: Literal["old", "new"]
    path: bytes
    symbol: str
    line: int
    numbers: MetricsByName

    @property
    def metrics(self) -> list[Metric]:
        """All metrics of the function."""
        return [*chain.from_iterable(self.numbers.values())]


# A function that returns the lines of a measured function below its name, without white space. They are empty if they
# are unknown.
FunctionBodyReader = Callable[[MeasuredFunction], Sequence[bytes]]


def match_moved_functions(
    removed: Sequence[MeasuredFunction],
    added: Sequence[MeasuredFunction],
    files: FileMap,
    read_body: FunctionBodyReader,
) -> list[tuple[MeasuredFunction, MeasuredFunction]]:
    """Return the matching pairs of removed and added functions, sorted by their new place."""
    old, new = ([measured for measured in side if measured.symbol] for side in (removed, added))
    matcher = _Matcher(old, new, files, read_body)
    keys = matcher.body_key, matcher.name_in_file, _simple_name
    pairs = chain.from_iterable(map(matcher.match, keys))
    return sorted(pairs, key=lambda pair: (pair[1].path, pair[1].line))


class _Matcher:
    """The functions without a match. Bodies are read only if a key on the other side makes a match possible."""

    def __init__(
        self,
        removed: list[MeasuredFunction],
        added: list[MeasuredFunction],
        files: FileMap,
        read_body: FunctionBodyReader,
    ) -> None:
        self._removed = removed
        self._added = added
        self._files = files
        self._read_body = read_body
        self._bodies: dict[int, Counter[bytes]] = {}
        # Functions with equal bodies have equal metrics.
        self._common_values = {*map(_values, removed)} & {*map(_values, added)}

    def match(self, key: Callable[[MeasuredFunction], Hashable]) -> Iterable[tuple[MeasuredFunction, MeasuredFunction]]:
        """Remove and return the pairs whose key is unique on both sides, and whose bodies are similar."""
        ones, others = _index_unique(self._removed, key), _index_unique(self._added, key)
        pairs = [(one, others[value]) for value, one in ones.items() if value in others]
        pairs = [pair for pair in pairs if self._are_similar(*pair)]
        matched = {id(function) for pair in pairs for function in pair}
        self._removed = [function for function in self._removed if id(function) not in matched]
        self._added = [function for function in self._added if id(function) not in matched]
        return pairs

    def body_key(self, function: MeasuredFunction) -> Hashable:
        """Return the lines of a body, or None if they are unknown or no body can be equal."""
        return frozenset(self._body(function).items()) or None if _values(function) in self._common_values else None

    def name_in_file(self, function: MeasuredFunction) -> Hashable:
        """Return the simple name of a function with the new path of its file."""
        path = self._files.new_path(function.path) if function.side == "old" else function.path
        return path, _simple_name(function)

    def _are_similar(self, one: MeasuredFunction, other: MeasuredFunction) -> bool:
        left, right = self._body(one), self._body(other)
        return 2 * (left & right).total() >= max(left.total(), right.total()) > 0

    def _body(self, function: MeasuredFunction) -> Counter[bytes]:
        if id(function) not in self._bodies:
            self._bodies[id(function)] = Counter(self._read_body(function))
        return self._bodies[id(function)]


def _values(function: MeasuredFunction) -> Hashable:
    return frozenset((metric.metric, metric.value) for metric in function.metrics)


def _simple_name(function: MeasuredFunction) -> str:
    return function.symbol.rpartition(".")[2]


def _index_unique(
    functions: Iterable[MeasuredFunction], key: Callable[[MeasuredFunction], Hashable]
) -> dict[Hashable, MeasuredFunction]:
    """Return the functions whose key is not None and occurs once."""
    groups: dict[Hashable, list[MeasuredFunction]] = defaultdict(list)
    for function in functions:
        groups[key(function)].append(function)
    return {value: group[0] for value, group in groups.items() if len(group) == 1 and value is not None}
