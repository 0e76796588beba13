"""The number of files that depend on each file of a batch, directly or indirectly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from codebatch.model.graph import strong_components
from codebatch.query.answers.dependencies import BatchImports, FileImport
from codebatch.query.answers.numbers import read_file_metrics
from codebatch.query.sources.records import BatchRecords

_DIRECT_METRIC = "dependents"
_COUNTED_EDGES_MAX = 300_000
"""In a batch with more `depends` edges, only direct dependents are counted. To read so many edges takes a second."""


class DependentCounts(msgspec.Struct, frozen=True):
    """The number of dependents of each file, 0 for files without an entry.

    If `are_minimums` is set, only direct dependents were counted.
    """

    by_path: Mapping[bytes, int]
    are_minimums: bool


def count_dependents(records: BatchRecords) -> DependentCounts:
    """Count the dependents of each file, as `find_dependents` does. The batch must have the task `dependencies`.

    Raises StoreCorrupt.
    """
    if records.counts("dependencies").kinds.get("edge", 0) > _COUNTED_EDGES_MAX:
        return DependentCounts(read_file_metrics(records, (_DIRECT_METRIC,))[_DIRECT_METRIC], are_minimums=True)
    counts = count_transitive_importers(BatchImports(records))
    return DependentCounts({path.encode(): count for path, count in counts.items()}, are_minimums=False)


def count_transitive_importers(imports: Iterable[FileImport]) -> dict[str, int]:
    """Return for each imported file the number of other files that import it, directly or indirectly.

    The importers of a file are the bits of a big integer. Files of one cycle have the same importers.
    """
    graph: dict[str, set[str]] = {}
    for edge in imports:
        graph.setdefault(edge.source, set()).add(edge.target)
        graph.setdefault(edge.target, set())
    components = list(strong_components({path: sorted(targets) for path, targets in graph.items()}))
    component_of = {path: number for number, component in enumerate(components) for path in component}
    bit_of = {path: 1 << bit for bit, path in enumerate(graph)}
    importers: dict[int, int] = {}
    counts: dict[str, int] = {}
    # A component comes after all components that it imports. So in reverse, all importers come first.
    for number in range(len(components) - 1, -1, -1):
        members = components[number]
        bits = importers.pop(number, 0) | sum(bit_of[path] for path in members)
        for target in {component_of[target] for path in members for target in graph[path]} - {number}:
            importers[target] = importers.get(target, 0) | bits
        if count := bits.bit_count() - 1:
            counts.update(dict.fromkeys(members, count))
    return counts
