"""File dependencies: the transitive dependents of a file and the import cycles, from the `depends` edges of a batch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, pairwise

import msgspec

from codebatch.index.keys import DEPENDENCY_TAG, TermLookup, make_key
from codebatch.model.entry import display_path
from codebatch.model.graph import strong_components
from codebatch.model.record import Resolution
from codebatch.plugins.worker_services import fact_services
from codebatch.protocol.record_frames import FRAME_BYTES
from codebatch.query.answers.numbers import read_file_metrics
from codebatch.query.filters.decoding import decode_lines
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.missing_tasks import task_not_run_error
from codebatch.query.sources.records import BatchRecords
from codebatch.query.sources.sources import ShardRecords

TARGET_LOOKUPS_MAX = 100
"""The maximum number of targets that are looked up in the index. For more targets, all edges are read once."""

_LOOKUP_SHARE_DIVISOR = 5
"""Frames are looked up one by one only if the index names at most 1/_LOOKUP_SHARE_DIVISOR of all frames.

To look up a frame takes 1.5 times as long as to read it in sequence. The next import step may also need as many
look-ups.
"""


class Dependent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A file that depends on the requested file, directly or indirectly.

    `distance` is the number of import steps from this file to the requested file. In the first step, this file imports
    the file `imports` at `line`. `resolution` shows how certain this import is.
    """

    path: str
    distance: int
    imports: str
    line: int
    resolution: Resolution


class FileImport(msgspec.Struct, frozen=True, gc=False):
    """An import of a file of the snapshot by another file.

    If `type_only` is set, only a type checker uses the import. If `deferred` is set, the import is executed after the
    file was loaded, for example in a function. If `implicit` is set, the file uses a name of the other file without an
    import.
    """

    source: str
    target: str
    line: int
    resolution: Resolution
    type_only: bool = False
    deferred: bool = False
    implicit: bool = False


class Cycle(msgspec.Struct, frozen=True, kw_only=True):
    """An import cycle: files that all import one another, directly or indirectly.

    `shortest` is a shortest cycle through the first file. `cut` is the import in `shortest` whose removal leaves the
    fewest files in cycles.
    """

    files: tuple[str, ...]
    shortest: tuple[str, ...]
    cut: FileImport


class BatchImports:
    """The imports of a batch between files of its snapshot. Files whose names are not UTF-8 are left out."""

    def __init__(self, records: BatchRecords, *, is_exact: bool = False) -> None:
        """Wrap the records of a batch. With `is_exact`, imports with another resolution than `exact` are left out.

        Raises TaskNotRun if the batch did not run the task `dependencies`.
        """
        if DEPENDENCIES_TASK not in records.task_names:
            raise task_not_run_error("the batch did not run the task dependencies", (DEPENDENCIES_TASK,))
        self._records = records
        self._resolutions = ("exact",) if is_exact else ("exact", "file", "name")
        self.all_imports: Mapping[str, Sequence[FileImport]] | None = None
        """All imports by imported file, if all edges were read. Otherwise None."""

    def __iter__(self) -> Iterator[FileImport]:
        """Yield all imports, in path order. Of the uses of a file without an import, only the first is yielded.

        Raises StoreCorrupt.
        """
        implicit: set[tuple[str, str]] = set()
        for edge in self._read_imports(self._edge_pieces()):
            if edge.implicit:
                pair = (edge.source, edge.target)
                if pair in implicit:
                    continue
                implicit.add(pair)
            yield _as_import(edge)

    def imports_between(self, files: Collection[str]) -> Iterator[FileImport]:
        """Yield the imports whose source and target are both in `files`, in path order. Raises StoreCorrupt."""
        file_set = set(files)
        pieces = self._edge_pieces() if file_set else ()
        return (
            _as_import(edge)
            for edge in self._read_imports(pieces)
            if edge.source in file_set and edge.target in file_set
        )

    def importers_of(self, targets: Sequence[str]) -> Mapping[str, Sequence[FileImport]]:
        """Return the imports of some files, by imported file. The imports of a file are in path order.

        If an index lists the frames with these imports, only these frames are read. Otherwise, all imports are read and
        returned, including those of other files. Raises StoreCorrupt.
        """
        if self.all_imports is None and len(targets) <= TARGET_LOOKUPS_MAX:
            keys = [make_key(DEPENDENCY_TAG, target.encode("utf-8", "surrogateescape")) for target in targets]
            lookups = [TermLookup(key, is_prefix=False) for key in keys]
            pieces = self._edge_pieces(lookups)
            if self._is_lookup_cheap(pieces):
                return _group_by_target(self._read_imports(pieces))
        if self.all_imports is None:
            self.all_imports = _group_by_target(self._read_imports(self._edge_pieces()))
        return self.all_imports

    def _is_lookup_cheap(self, pieces: Sequence[ShardRecords]) -> bool:
        """Return whether the index lists the frames to read, and looking them up is faster than reading all frames."""
        named = [piece.frames for piece in pieces]
        outputs = self._records.source.outputs
        if None in named or outputs is None:
            return False
        output = outputs.manifest.task_output(DEPENDENCIES_TASK)
        assert output is not None, "it is a task of the batch"
        every = sum(shard.bytes // FRAME_BYTES + 1 for shard in output.shards)
        return _LOOKUP_SHARE_DIVISOR * sum(filter(None, named)) <= every

    def _edge_pieces(self, lookups: Sequence[TermLookup] = ()) -> list[ShardRecords]:
        return self._records.pieces(DEPENDENCIES_TASK, RecordFilter(kinds=("edge",)), lookups)

    def _read_imports(self, pieces: Iterable[ShardRecords]) -> Iterator[FileImport]:
        return chain.from_iterable(self._import_blocks(pieces))

    def _import_blocks(self, pieces: Iterable[ShardRecords]) -> Iterator[Sequence[FileImport]]:
        for piece in pieces:
            for block in self._records.read(piece):
                edges = [edge for edge in decode_lines(_edge_decoder(), block) if isinstance(edge, _DependsEdge)]
                self._records.reading.matched += len(edges)
                yield [edge for edge in edges if edge.resolution in self._resolutions and edge.source]


class _DependsEdge(
    FileImport, frozen=True, kw_only=True, gc=False, rename={"source": "path"}, tag_field="kind", tag="edge"
):
    """The decoded part of a `depends` edge. `source` is empty if the path of the importing file is not UTF-8."""

    source: str = ""


def _as_import(edge: FileImport) -> FileImport:
    return FileImport(
        edge.source, edge.target, edge.line, edge.resolution, edge.type_only, edge.deferred, edge.implicit
    )


class _SkippedMetric(msgspec.Struct, gc=False, tag_field="kind", tag="metric"):
    """The type as which metric records are decoded. They are then skipped.

    The task emits both edges and metrics. To decode all its records is faster than to search their lines for edges.
    """


class _SkippedFailure(msgspec.Struct, gc=False, tag_field="kind", tag="failure"):
    pass


# The decoder is created on first use, because most queries do not need it.
@cache
def _edge_decoder() -> msgspec.json.Decoder[_DependsEdge | _SkippedMetric | _SkippedFailure]:
    return msgspec.json.Decoder(_DependsEdge | _SkippedMetric | _SkippedFailure)


DEPENDENCIES_TASK = "dependencies"


def _group_by_target(imports: Iterable[FileImport]) -> Mapping[str, Sequence[FileImport]]:
    importers: dict[str, list[FileImport]] = {}
    for edge in imports:
        importers.setdefault(edge.target, []).append(edge)
    return importers


def tasks_for_dependencies(records: BatchRecords) -> frozenset[str]:
    """Return the names of `dependencies` and of all tasks that it needs."""
    return records.plan.needed_for("dependencies")


def find_dependents(
    importers_of: Callable[[Sequence[str]], Mapping[str, Sequence[FileImport]]], path: str, depth: int | None = None
) -> list[Dependent]:
    """Return the files that depend on a file, each once: the nearest first, then by path.

    The result has for each file its first import of a file that is one step nearer. With `depth`, only files at most
    this number of steps away are returned. `importers_of` is a function like `Imports.importers_of`.
    """
    dependents: dict[str, Dependent] = {}
    known = {path}
    nearest = [path]
    distance = 0
    while nearest and distance != depth:
        distance += 1
        reached = _nearest_importers(nearest, importers_of(nearest), known)
        nearest = sorted(reached)
        known.update(nearest)
        for source in nearest:
            first = reached[source]
            dependents[source] = Dependent(
                path=source,
                distance=distance,
                imports=first.target,
                line=first.line,
                resolution=first.resolution,
            )
    return list(dependents.values())


def find_cycles(records: BatchRecords, *, everything: bool = False) -> list[Cycle]:
    """Return the import cycles of a batch, in the order of the function `find_cycles_in`.

    `everything` is as in `find_cycles_in`. Raises InvalidInput if the batch has no dependencies, or StoreCorrupt.
    """
    imports = BatchImports(records)
    if everything:
        return find_cycles_in(imports, everything=True)
    if records.batch.about.paths:  # The metric `cycle` exists only for batches that are not restricted to paths.
        return find_cycles_in(imports)
    in_cycles = read_file_metrics(records, ("cycle",))["cycle"]
    return find_cycles_in(imports.imports_between([display_path(path) for path in in_cycles]))


def find_cycles_in(imports: Iterable[FileImport], *, everything: bool = False) -> list[Cycle]:
    """Return the import cycles, smallest first.

    Imports with the resolution `name` are ignored, because they are uncertain. Uses without an import are ignored too:
    files of one package may use each other. If `everything` is not set, imports that are not executed while a file is
    loaded are ignored too, and those in languages whose compilers refuse cycles.
    """
    facts_of = fact_services().path_facts
    graph: dict[str, dict[str, list[FileImport]]] = {}
    for edge in imports:
        is_harmless = edge.type_only or edge.deferred or facts_of(edge.source.encode()).refuses_cycles
        counts = everything or not is_harmless
        if edge.resolution != "name" and counts and not edge.implicit:
            graph.setdefault(edge.source, {}).setdefault(edge.target, []).append(edge)
            graph.setdefault(edge.target, {})
    ordered = {path: sorted(targets) for path, targets in graph.items()}
    circular = [sorted(component) for component in strong_components(ordered) if len(component) > 1]
    return [_make_cycle(graph, ordered, files) for files in sorted(circular, key=lambda files: (len(files), files))]


def _make_cycle(
    graph: Mapping[str, Mapping[str, list[FileImport]]], ordered: Mapping[str, Sequence[str]], files: list[str]
) -> Cycle:
    shortest = _shortest_way_back(ordered, files)
    inside = set(files)
    within = {path: [target for target in ordered[path] if target in inside] for path in files}

    def cost(step: tuple[str, str]) -> tuple[int, int, tuple[str, str]]:
        source, target = step
        remaining_edges = {**within, source: [edge for edge in within[source] if edge != target]}
        cyclic = sum(len(edge) for edge in strong_components(remaining_edges) if len(edge) > 1)
        return cyclic, len(graph[source][target]), step

    source, target = min(pairwise(shortest), key=cost)
    return Cycle(files=tuple(files), shortest=shortest, cut=min(graph[source][target], key=lambda edge: edge.line))


def _shortest_way_back(graph: Mapping[str, Iterable[str]], files: list[str]) -> tuple[str, ...]:
    """Return a shortest cycle through the first of `files`. Only these files are searched, breadth first."""
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
    cycle = [files[0]]
    while len(cycle) == 1 or cycle[-1] != files[0]:
        cycle.append(before[cycle[-1]])
    return tuple(reversed(cycle))


def _nearest_importers(
    targets: Iterable[str], importers: Mapping[str, Sequence[FileImport]], known: Collection[str]
) -> dict[str, FileImport]:
    """Return the files that import one of `targets`. Map each to the first of these imports.

    Files in `known` are left out.
    """
    reached: dict[str, FileImport] = {}
    for target in targets:
        for edge in importers.get(target, ()):
            source = edge.source
            if source in known:
                continue
            before = reached.get(source)
            if before is None or edge.line < before.line or (edge.line == before.line and target < before.target):
                reached[source] = edge
    return reached
