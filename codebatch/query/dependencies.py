"""How files hang together: the `depends` edges of a batch, walked backwards from a file, and their cycles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.graph import components
from codebatch.model.record import Resolution
from codebatch.query.filters import RecordFilter
from codebatch.query.records import BatchRecords


class Dependent(msgspec.Struct, frozen=True, kw_only=True):
    """A file that depends on the one asked for: in how many steps, on what in the first, and how sure that step is."""

    path: str
    distance: int
    imports: str
    line: int
    resolution: Resolution


class Import(msgspec.Struct, frozen=True):
    """An import of one file of the snapshot by another."""

    source: str
    target: str
    line: int
    resolution: Resolution


class Cycle(msgspec.Struct, frozen=True, kw_only=True):
    """Files that all lead to one another, and the shortest way from the first of them back to it."""

    files: tuple[str, ...]
    shortest: tuple[str, ...]


def iter_imports(records: BatchRecords) -> Iterator[Import]:
    """The imports of a batch that lead to files of its snapshot, by path. Raises InvalidInput where it knows of none.

    Files whose names are not UTF-8 have no part in it.
    """
    if "dependencies" not in records.task_names:
        raise InvalidInput("the batch has no dependencies", hint="run the pipeline `full`")
    for record in records.iter_records("dependencies", RecordFilter(kinds=("edge",))):
        line, resolution = record["line"], record["resolution"]
        if resolution != "external":
            assert isinstance(line, int)
            yield Import(str(record["path"]), str(record["target"]), line, msgspec.convert(resolution, Resolution))


def needed_tasks(records: BatchRecords) -> frozenset[str]:
    """The tasks on which the imports of a batch rest."""
    return records.plan.needed_for("dependencies")


def impact(imports: Iterable[Import], path: str) -> list[Dependent]:
    """The files that depend on one, nearest first, then by path; each once, by its first import of something nearer."""
    importers: dict[str, list[Import]] = {}
    for each in imports:
        importers.setdefault(each.target, []).append(each)
    found: dict[str, Dependent] = {}
    nearest = [path]
    distance = 0
    while nearest:
        distance += 1
        reached = _importers_of(nearest, importers)
        nearest = sorted(source for source in reached if source not in found and source != path)
        for source in nearest:
            first = reached[source]
            found[source] = Dependent(
                path=source,
                distance=distance,
                imports=first.target,
                line=first.line,
                resolution=first.resolution,
            )
    return list(found.values())


def cycles(imports: Iterable[Import]) -> list[Cycle]:
    """The cycles of what surely leads to one file (`exact`, `file`), the one of most files first."""
    graph: dict[str, dict[str, None]] = {}
    for each in imports:
        if each.resolution != "name":
            graph.setdefault(each.source, {})[each.target] = None
            graph.setdefault(each.target, {})
    ordered = {path: sorted(targets) for path, targets in graph.items()}
    found = [sorted(component) for component in components(ordered) if len(component) > 1]
    return [
        Cycle(files=tuple(files), shortest=_shortest_way_back(ordered, files))
        for files in sorted(found, key=lambda files: (-len(files), files))
    ]


def _shortest_way_back(graph: Mapping[str, Iterable[str]], files: list[str]) -> tuple[str, ...]:
    """Breadth first from the first of the files, within them."""
    within = set(files)
    before: dict[str, str] = {}
    nearest = [files[0]]
    while files[0] not in before:
        following: list[str] = []
        for path in nearest:
            for target in graph[path]:
                if target in within and target not in before and target != path:
                    before[target] = path
                    following.append(target)
        nearest = following
    way = [files[0]]
    while len(way) == 1 or way[-1] != files[0]:
        way.append(before[way[-1]])
    return tuple(reversed(way))


def _importers_of(targets: Iterable[str], importers: Mapping[str, Iterable[Import]]) -> dict[str, Import]:
    reached: dict[str, Import] = {}
    for target in targets:
        for each in importers.get(target, ()):
            before = reached.get(each.source)
            if before is None or (each.line, each.target) < (before.line, before.target):
                reached[each.source] = each
    return reached
