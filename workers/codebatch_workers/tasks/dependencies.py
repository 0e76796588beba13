"""dependencies: the files of the snapshot to which each import resolves, and metrics of the import graph.

An import can resolve to several files. There is one `depends` edge for each of them; edges are sorted by line. If an
import resolves to no file of the snapshot, the target of its edge is the name as written.

Then the metrics of the graph follow, unless they are 0. `dependencies` is the number of files that a file imports
directly. `dependents` is the number of files that import the file directly. `cycle` is the number of files in the
import cycle that contains the file. Only imports that resolve to one file count (resolution `exact` and `file`). For
cycles, an import counts only if it is executed while its file is loaded. Files whose names are not UTF-8 are ignored.

If the batch is restricted to paths, imports can still resolve to any file of the snapshot. Imports in files outside the
restriction are unknown, so `dependents` and `cycle` are left out.

`update` continues from an older batch on one condition. The set of files, their languages, and all content that affects
resolution must be the same as in the older batch. Then only the imports of files whose imports changed are resolved,
and the metrics are recomputed.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import itemgetter

from codebatch.model.entry import Entry, path_fields
from codebatch.model.graph import strong_components
from codebatch.model.record import Edge, File, Metric, Names, Record
from codebatch.model.task import NoConfig
from codebatch_workers.api.before import Before
from codebatch_workers.api.project import Project
from codebatch_workers.api.protocols import TaskEnvironment
from codebatch_workers.languages.facts import path_facts
from codebatch_workers.languages.registry import implicit_import_rule, import_rule
from codebatch_workers.resolution.configuration_files import DOCUMENT_BYTES_MAX, is_configuration_file, relevant_part
from codebatch_workers.resolution.implicit_imports import ImplicitImports
from codebatch_workers.resolution.import_rule import ImportContext
from codebatch_workers.resolution.resolver import ProjectResolver
from codebatch_workers.resolution.tree import PathTree

# The imported files of each file. The flag is whether the import counts for cycles.
_ImportGraph = dict[str, dict[str, bool]]
_MetricValues = dict[str, int]


def create(_environment: TaskEnvironment[NoConfig]) -> DependenciesTask:
    """Return the task. It has no configuration."""
    return DependenciesTask()


class DependenciesTask:
    """The task: `edge` records, then `metric` records."""

    def run_project(self, project: Project) -> Iterator[Record]:
        """Yield the records of all files: first all edges, by path, then all metrics, by path."""
        resolver = _ProjectLinks(project)
        graph: _ImportGraph = {path: {} for path in resolver.files}
        for path, imports, names in _uses_by_path(project):
            if path in resolver.files:
                edges = resolver.edges_of(path, imports, names)
                graph[path] = _certain_targets(path, edges)
                yield from edges
        for path, values in _graph_metrics(graph, is_whole=not project.outside).items():
            yield from _metric_records(path, values)

    def update(self, project: Project, before: Before) -> Iterable[tuple[Entry, list[Record]]] | None:
        """Return the files whose records may have changed, with all their records.

        Return None if the imports of all files must be resolved again.
        """
        changed: dict[str, tuple[list[Edge], Names | None]] = {}
        for old, new in before.changes:
            if old is None or new is None:
                return None
            if old.object != new.object and _decisive_part(old, before.read) != _decisive_part(new, project.read):
                return None
            file = _file_record(project.records_of(new, "parse"))
            old_file = _file_record(before.records_of(old, "parse"))
            if file is None or old_file is None or old_file.lang != file.lang:
                return None
            records, old_records = project.records_of(new, "symbols"), before.records_of(old, "symbols")
            if _definitions_key(old_file, old_records) != _definitions_key(file, records):
                return None
            imports, names = _import_edges(records), _used_names(records)
            if (imports, names) != (_import_edges(old_records), _used_names(old_records)):
                changed[_path_text(new)] = (imports, names)
        changed.pop("", None)
        return _changed_records(project, before, changed) if changed else ()


def _uses_by_path(project: Project) -> Iterator[tuple[str, list[Edge], Names | None]]:
    """Yield the imports of each file, and the names that it uses without an import. Files without both are left out."""
    imports = project.records("symbols", "edge", holding='"edge_type":"imports"')
    names = project.records("symbols", "names")
    in_path_order = heapq.merge(imports, names, key=lambda file: file[0].path)
    for entry, parts in groupby(in_path_order, key=itemgetter(0)):
        records = [record for _, file_records in parts for record in file_records]
        yield _path_text(entry), _import_edges(records), _used_names(records)


def _used_names(records: Iterable[Record]) -> Names | None:
    return next((record for record in records if isinstance(record, Names)), None)


def _changed_records(
    project: Project, before: Before, changed: Mapping[str, tuple[list[Edge], Names | None]]
) -> Iterator[tuple[Entry, list[Record]]]:
    """Yield the files whose records may have changed, with all their records.

    `changed` has the new imports and used names by path. An import can also change the metrics of other files.
    """
    resolver = _ProjectLinks(project)
    graph: _ImportGraph = {path: {} for path in resolver.files}
    values: dict[str, _MetricValues] = {}
    for file, records in before.own_records():
        path = _path_text(file)
        graph[path] = _certain_targets(path, records)
        values[path] = {record.metric: record.value for record in records if isinstance(record, Metric)}
    edges: dict[str, list[Edge]] = {}
    for path, (imports, names) in changed.items():
        edges[path] = resolver.edges_of(path, imports, names) if path in resolver.files else []
        graph[path] = _certain_targets(path, edges[path])
    metrics = _graph_metrics(graph, is_whole=True)
    moved = {path for path in metrics.keys() | values.keys() if metrics.get(path, {}) != values.get(path, {})}
    for file, records in before.own_records() if moved - changed.keys() else ():
        path = _path_text(file)
        if path in moved and path not in changed:
            edges[path] = [record for record in records if isinstance(record, Edge)]
    for path in edges.keys() | moved:
        entry = project.find(path.encode())
        assert entry is not None, "the same files as before"
        yield entry, [*edges.get(path, ()), *_metric_records(path, metrics.get(path, {}))]


def _path_text(file: Entry) -> str:
    """Return the path of a file as text. If the path is not valid UTF-8, return an empty text."""
    path = path_fields(file.path)[0]
    return path if isinstance(path, str) else ""


def _file_record(records: Iterable[Record]) -> File | None:
    return next((record for record in records if isinstance(record, File)), None)


def _file_by_path(project: Project) -> dict[str, File]:
    """Return the `file` record of each file whose name is UTF-8."""
    records_by_path = ((_path_text(file), records) for file, records in project.records("parse", "file"))
    return {path: record for path, records in records_by_path if path for record in records if isinstance(record, File)}


class _ProjectLinks:
    """Resolves the imports of files, explicit and implicit. `files` has the `file` records of the batch by path."""

    def __init__(self, project: Project) -> None:
        def read(path: str) -> bytes | None:
            file = project.find(path.encode())
            return project.read(file) if file is not None and file.size <= DOCUMENT_BYTES_MAX else None

        self.files = _file_by_path(project)
        tree = PathTree([*self.files, *filter(None, map(_path_text, project.outside))], read)
        context = ImportContext(tree, lambda: self._implicit.definitions)
        self._resolver = ProjectResolver(context, import_rule)
        self._implicit = ImplicitImports(project, self.files, context, implicit_import_rule)

    def edges_of(self, path: str, imports: Sequence[Edge], names: Names | None) -> list[Edge]:
        """Return the `depends` edges of a file, by line."""
        explicit = self._resolve_imports(path, self.files[path].lang, imports, names)
        return sorted([*explicit, *self._implicit.edges(path, names, imports)], key=lambda edge: edge.line)

    def _resolve_imports(self, path: str, language: str, imports: Sequence[Edge], names: Names | None) -> list[Edge]:
        """Return a `depends` edge for each file to which an import can resolve.

        There are none in a language whose imports name modules and not files. Edges with the same target and line are
        merged.
        """
        edges: dict[tuple[str, int], Edge] = {}
        erases = self._resolver.erases_imports(path, language) if any(record.erasable for record in imports) else False
        for record in () if self._implicit.imports_modules(language) else imports:
            type_only = record.type_only or (record.erasable and erases)
            resolved = self._implicit.resolve_import(path, record.target) or self._resolver.resolve(
                path, language, record.target, is_module=record.is_module
            )
            paths = self._implicit.select_used(path, record.target, resolved.paths, names)
            for target in paths or ((record.target,) if resolved.resolution == "external" else ()):
                known = edges.get((target, record.line))
                if known is None or (type_only, record.deferred) < (known.type_only, known.deferred):
                    edges[target, record.line] = Edge(
                        path=path,
                        edge_type="depends",
                        source="",
                        target=target,
                        line=record.line,
                        resolution=resolved.resolution,
                        imported=record.target,
                        type_only=type_only,
                        deferred=record.deferred,
                        cell=record.cell,
                        cell_line=record.cell_line,
                    )
        return list(edges.values())


def _definitions_key(file: File, records: Sequence[Record]) -> Hashable:
    rule = implicit_import_rule(file.lang)
    return None if rule is None else rule.definitions_key(file, records)


def _decisive_part(file: Entry, read: Callable[[Entry], bytes]) -> Hashable:
    """Return the part of a file's content that affects how imports in other files resolve."""
    path = _path_text(file)
    return relevant_part(path, read(file)) if is_configuration_file(path) and file.size <= DOCUMENT_BYTES_MAX else None


def _import_edges(records: Iterable[Record]) -> list[Edge]:
    return [record for record in records if isinstance(record, Edge) and record.edge_type == "imports"]


def _certain_targets(path: str, records: Iterable[Record]) -> dict[str, bool]:
    """Map each file that `path` certainly imports, other than itself, to whether the import counts for cycles."""
    targets: dict[str, bool] = {}
    can_close = not path_facts(path.encode()).refuses_cycles
    for record in records:
        if isinstance(record, Edge) and record.resolution in ("exact", "file") and record.target != path:
            counts = can_close and not (record.implicit or record.type_only or record.deferred)
            targets[record.target] = targets.get(record.target, False) or counts
    return targets


def _graph_metrics(graph: _ImportGraph, *, is_whole: bool) -> dict[str, _MetricValues]:
    """Return those metrics of each file that are not 0. If `is_whole` is false, leave out `dependents` and `cycle`."""
    dependents: Counter[str] = Counter()
    cycles: dict[str, int] = {}
    if is_whole:
        dependents.update(chain.from_iterable(graph.values()))
        # A file without imports is in no cycle, so imports of such a file are left out.
        edges = {
            path: [target for target, counts in targets.items() if counts and graph[target]]
            for path, targets in graph.items()
            if targets
        }
        for component in strong_components(edges):
            if len(component) > 1:
                cycles.update(dict.fromkeys(component, len(component)))
    metrics_by_file: dict[str, _MetricValues] = {}
    for path, targets in graph.items():
        if not targets and path not in dependents:
            continue
        metrics = {"dependencies": len(targets), "dependents": dependents[path], "cycle": cycles.get(path, 0)}
        if values := {metric: value for metric, value in metrics.items() if value}:
            metrics_by_file[path] = values
    return metrics_by_file


def _metric_records(path: str, values: _MetricValues) -> Iterator[Metric]:
    for metric, value in values.items():
        yield Metric(path=path, metric=metric, value=value)
