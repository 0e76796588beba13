"""What depends on a file: import edges, resolved and walked backwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from codebatch.errors import InvalidInput
from codebatch.query.records import BatchRecords, RecordFilter
from codebatch.query.resolution import Resolution, Resolver


class Dependent(msgspec.Struct, frozen=True, kw_only=True):
    """A file that depends on the one asked for: in how many steps, on what in the first, and how sure that step is."""

    path: str
    distance: int
    imports: str
    line: int
    resolution: Resolution


@dataclass(frozen=True, slots=True)
class Import:
    """An import of one file of the snapshot by another."""

    source: str
    target: str
    line: int
    resolution: Resolution


def iter_imports(records: BatchRecords) -> Iterator[Import]:
    """The imports of a batch that lead to files of its snapshot. Raises InvalidInput where it has no such records.

    Files whose names are not UTF-8 have no part in it.
    """
    if not {"parse", "symbols"} <= set(records.task_names):
        raise InvalidInput("the batch has no symbols", hint="run the pipeline `full`")
    languages = {
        str(record["path"]): str(record["lang"])
        for record in records.iter_records("parse", RecordFilter(kinds=("file",)))
        if "path" in record
    }
    resolver = Resolver(languages)
    for record in records.iter_records("symbols", RecordFilter(kinds=("edge",))):
        if record["edge_type"] == "imports" and "path" in record:
            path, line = str(record["path"]), record["line"]
            assert isinstance(line, int)
            resolved = resolver.resolve(path, languages.get(path, ""), str(record["target"]))
            for target in resolved.paths:
                yield Import(path, target, line, resolved.resolution)


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


def _importers_of(targets: Iterable[str], importers: Mapping[str, Iterable[Import]]) -> dict[str, Import]:
    reached: dict[str, Import] = {}
    for target in targets:
        for each in importers.get(target, ()):
            before = reached.get(each.source)
            if before is None or (each.line, each.target) < (before.line, before.target):
                reached[each.source] = each
    return reached
