"""How files hang together: the `depends` edges of a batch, walked backwards from a file, and their cycles."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import msgspec

from codebatch.errors import InvalidInput
from codebatch.index.keys import DEPENDENCY, Lookup, make_key
from codebatch.model.entry import display_path
from codebatch.model.graph import can_close_cycle, components
from codebatch.model.record import Resolution
from codebatch.protocol.record_frames import FRAME_BYTES
from codebatch.query.answers.numbers import numbers_of_files
from codebatch.query.filters.decoding import decode_lines, line_at
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.filters.line_prefilter import LinePrefilter, row_of
from codebatch.query.sources.records import BatchRecords
from codebatch.query.sources.sources import ShardRecords

if TYPE_CHECKING:
    from codebatch.query.answers.file_numbers import FileNumbers

TARGETS_LOOKED_UP_MAX = 100
"""More are not looked up one by one: all is read, once."""

_LOOKED_UP_OF = 5
"""Of so many frames one is looked up at most: alone it takes 1.5 times as long (0.3 ms, as Django's), and the next step
may ask for as many again.
"""


class Dependent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A file that depends on the requested file, directly or indirectly.

    `distance` is the number of import steps. The file imports the file `imports` at `line`; this is the first step.
    `resolution` shows how certain this import is.
    """

    path: str
    distance: int
    imports: str
    line: int
    resolution: Resolution


class FileImport(msgspec.Struct, frozen=True, gc=False):
    """An import of a file of the snapshot by another file.

    If `type_only` is set, only a type checker uses the import. If `deferred` is set, the import is executed after the
    file was loaded, for example in a function.
    """

    source: str
    target: str
    line: int
    resolution: Resolution
    type_only: bool = False
    deferred: bool = False


class Cycle(msgspec.Struct, frozen=True, kw_only=True):
    """An import cycle: files that all import one another, directly or indirectly.

    `shortest` is a shortest cycle through the first file. `cut` is the import of that cycle whose removal leaves the
    fewest files in cycles.
    """

    files: tuple[str, ...]
    shortest: tuple[str, ...]
    cut: FileImport


class Imports:
    """The imports of a batch that lead to files of its snapshot. Files whose names are not UTF-8 have no part in it."""

    def __init__(self, records: BatchRecords) -> None:
        """Raises InvalidInput where the batch knows of none."""
        if _TASK not in records.task_names:
            raise InvalidInput(
                "the batch did not run the task dependencies",
                hint="to include this task, run: codebatch run --pipeline full PATH",
            )
        self._records = records
        self.every: Mapping[str, Sequence[FileImport]] | None = None
        """By whom each file is imported, once all of it had to be read."""

    def __iter__(self) -> Iterator[FileImport]:
        """All, by path. Raises StoreCorrupt."""
        return map(_as_import, self._read(self._pieces(), LinePrefilter()))

    def between(self, files: Collection[str]) -> Iterator[FileImport]:
        """Those of some files by others of them, by path. Raises StoreCorrupt."""
        wanted = set(files)
        pieces = self._pieces() if wanted else ()
        return (_as_import(each) for each in self._read(pieces, _EdgesOf(wanted)) if each.target in wanted)

    def importers_of(self, targets: Sequence[str]) -> Mapping[str, Sequence[FileImport]]:
        """The imports of some files, by these; by path each. Where an index names what holds them, no more is read.

        Raises StoreCorrupt.
        """
        if self.every is None and len(targets) <= TARGETS_LOOKED_UP_MAX:
            lookups = [Lookup(make_key(DEPENDENCY, target.encode()), is_prefix=False) for target in targets]
            pieces = self._pieces(lookups)
            if self._are_few(pieces):
                return _by_target(self._read(pieces, LinePrefilter(rows=(row_of("target", targets),))))
        if self.every is None:
            self.every = _by_target(self._read(self._pieces(), LinePrefilter()))
        return self.every

    def _are_few(self, pieces: Sequence[ShardRecords]) -> bool:
        """Whether an index names what to read, and to read that alone takes less than to read all."""
        named = [piece.frames for piece in pieces]
        outputs = self._records.source.outputs
        if None in named or outputs is None:
            return False
        output = outputs.manifest.task(_TASK)
        assert output is not None, "it is a task of the batch"
        every = sum(shard.bytes // FRAME_BYTES + 1 for shard in output.shards)
        return _LOOKED_UP_OF * sum(filter(None, named)) <= every

    def _pieces(self, lookups: Sequence[Lookup] = ()) -> list[ShardRecords]:
        return self._records.pieces(_TASK, RecordFilter(kinds=("edge",)), lookups)

    def _read(self, pieces: Iterable[ShardRecords], marks: LinePrefilter | _EdgesOf) -> Iterator[FileImport]:
        return chain.from_iterable(self._blocks(pieces, marks))

    def _blocks(
        self, pieces: Iterable[ShardRecords], marks: LinePrefilter | _EdgesOf
    ) -> Iterator[Sequence[FileImport]]:
        for piece in pieces:
            for block in self._records.read(piece):
                edges = [each for each in decode_lines(_decoder(), marks.find(block)) if isinstance(each, _DependsEdge)]
                self._records.reading.matched += len(edges)
                yield [edge for edge in edges if edge.resolution != "external" and edge.source]


class _EdgesOf:
    """The edges of some files. Records come by path: of most blocks only their first and last lines are looked at."""

    def __init__(self, files: Iterable[str]) -> None:
        self._paths = sorted(file.encode() for file in files)

    def find(self, block: bytes) -> bytes:
        """Of a block of whole lines those that are edges of the files, in their order."""
        ends = decode_lines(_line_decoder(), line_at(block, 0) + b"\n" + line_at(block, len(block) - 2))
        if not ends:
            return b""
        first, last = bisect_left(self._paths, ends[0].path.encode()), bisect_right(self._paths, ends[-1].path.encode())
        starts = tuple(
            b'{"kind":"edge","path":%b,' % msgspec.json.encode(path.decode()) for path in self._paths[first:last]
        )
        return LinePrefilter(starts=starts).find(block) if starts else b""


class _FileLine(msgspec.Struct, gc=False):
    """Of which file a line is; no other files have a part in it."""

    path: str


class _DependsEdge(
    FileImport, frozen=True, kw_only=True, gc=False, rename={"source": "path"}, tag_field="kind", tag="edge"
):
    """A `depends` edge, of which no more is read. Without a `source` where that is no UTF-8."""

    source: str = ""


def _as_import(edge: FileImport) -> FileImport:
    return FileImport(edge.source, edge.target, edge.line, edge.resolution, edge.type_only, edge.deferred)


class _Metric(msgspec.Struct, gc=False, tag_field="kind", tag="metric"):
    """What else the task says. To decode it takes less time than to pick out edges by their text."""


class _Failure(msgspec.Struct, gc=False, tag_field="kind", tag="failure"):
    pass


# Made late: with what they take apart they cost 3 ms, and most questions need neither.
@cache
def _decoder() -> msgspec.json.Decoder[_DependsEdge | _Metric | _Failure]:
    return msgspec.json.Decoder(_DependsEdge | _Metric | _Failure)


@cache
def _line_decoder() -> msgspec.json.Decoder[_FileLine]:
    return msgspec.json.Decoder(_FileLine)


_TASK = "dependencies"


def _by_target(imports: Iterable[FileImport]) -> Mapping[str, Sequence[FileImport]]:
    importers: dict[str, list[FileImport]] = {}
    for each in imports:
        importers.setdefault(each.target, []).append(each)
    return importers


def needed_tasks(records: BatchRecords) -> frozenset[str]:
    """The tasks on which the imports of a batch rest."""
    return records.plan.needed_for("dependencies")


def impact(
    importers_of: Callable[[Sequence[str]], Mapping[str, Sequence[FileImport]]], path: str, depth: int | None = None
) -> list[Dependent]:
    """The files that depend on one, nearest first, then by path; each once, by its first import of something nearer.

    In at most `depth` steps, in any number where it is None. `importers_of` is as in Imports.
    """
    found: dict[str, Dependent] = {}
    known = {path}
    nearest = [path]
    distance = 0
    while nearest and distance != depth:
        distance += 1
        reached = _importers_of(nearest, importers_of(nearest), known)
        nearest = sorted(reached)
        known.update(nearest)
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


def find_cycles(records: BatchRecords, kept: FileNumbers | None = None, *, everything: bool = False) -> list[Cycle]:
    """Return the cycles of a batch, as `cycles` has them; `kept` says which files are in any.

    Raises InvalidInput if the batch has no dependencies, or StoreCorrupt.
    """
    imports = Imports(records)
    if everything:
        return cycles(imports, everything=True)
    if records.batch.about.paths:  # Of a part of the snapshot it is not told which files are in a cycle.
        return cycles(imports)
    in_cycles = None if kept is None else kept.of("cycle")
    if in_cycles is None:
        in_cycles = numbers_of_files(records, ("cycle",))["cycle"]
    return cycles(imports.between([display_path(path) for path in in_cycles]))


def cycles(imports: Iterable[FileImport], *, everything: bool = False) -> list[Cycle]:
    """Return the cycles of what surely leads to one file (`exact`, `file`), the one of fewest files first.

    Imports that no loading of a file executes count only for `everything`.
    """
    graph: dict[str, dict[str, list[FileImport]]] = {}
    for each in imports:
        counts = everything or can_close_cycle(each.source, type_only=each.type_only, deferred=each.deferred)
        if each.resolution != "name" and counts:
            graph.setdefault(each.source, {}).setdefault(each.target, []).append(each)
            graph.setdefault(each.target, {})
    ordered = {path: sorted(targets) for path, targets in graph.items()}
    found = [sorted(component) for component in components(ordered) if len(component) > 1]
    return [_cycle(graph, ordered, files) for files in sorted(found, key=lambda files: (len(files), files))]


def _cycle(
    graph: Mapping[str, Mapping[str, list[FileImport]]], ordered: Mapping[str, Sequence[str]], files: list[str]
) -> Cycle:
    shortest = _shortest_way_back(ordered, files)
    inside = set(files)
    within = {path: [target for target in ordered[path] if target in inside] for path in files}

    def cost(step: tuple[str, str]) -> tuple[int, int, tuple[str, str]]:
        source, target = step
        rest = {**within, source: [each for each in within[source] if each != target]}
        tangled = sum(len(each) for each in components(rest) if len(each) > 1)
        return tangled, len(graph[source][target]), step

    source, target = min(pairwise(shortest), key=cost)
    return Cycle(files=tuple(files), shortest=shortest, cut=min(graph[source][target], key=lambda each: each.line))


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


def _importers_of(
    targets: Iterable[str], importers: Mapping[str, Sequence[FileImport]], known: Collection[str]
) -> dict[str, FileImport]:
    """Who imports some files and is not known yet, each by the first of these imports."""
    reached: dict[str, FileImport] = {}
    for target in targets:
        for each in importers.get(target, ()):
            source = each.source
            if source in known:
                continue
            before = reached.get(source)
            if before is None or each.line < before.line or (each.line == before.line and target < before.target):
                reached[source] = each
    return reached
