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

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import chain

from codebatch.model.entry import Entry, path_fields
from codebatch.model.graph import can_close_cycle, strong_components
from codebatch.model.record import Edge, File, Metric, Record, Symbol
from codebatch.model.task import NoConfig
from codebatch_workers.api.before import Before
from codebatch_workers.api.project import Project
from codebatch_workers.api.protocols import TaskEnvironment
from codebatch_workers.resolution import (
    DOCUMENT_BYTES_MAX,
    DeclaredModule,
    JvmDefinitions,
    ProjectResolver,
    is_configuration_file,
    relevant_part,
)

# The imported files of each file. The flag is whether the import counts for cycles.
_ImportGraph = dict[str, dict[str, bool]]
_MetricValues = dict[str, int]

_JVM_LANGUAGES = frozenset({"java", "kotlin", "scala"})
_JVM_ENDINGS = (".java", ".kt", ".kts", ".scala", ".sc")


def create(_environment: TaskEnvironment[NoConfig]) -> DependenciesTask:
    """Return the task. It has no configuration."""
    return DependenciesTask()


class DependenciesTask:
    """The task: `edge` records, then `metric` records."""

    def run_project(self, project: Project) -> Iterator[Record]:
        """Yield the records of all files: first all edges, by path, then all metrics, by path."""
        languages = _language_by_path(project)
        resolver = _make_resolver(project, languages)
        graph: _ImportGraph = {path: {} for path in languages}
        for file, records in project.records("symbols", "edge", holding='"edge_type":"imports"'):
            path = _path_text(file)
            if path in languages:
                edges = _resolve_imports(resolver, path, languages[path], _import_edges(records))
                graph[path] = _certain_targets(path, edges)
                yield from edges
        for path, values in _graph_metrics(graph, is_whole=not project.outside).items():
            yield from _metric_records(path, values)

    def update(self, project: Project, before: Before) -> Iterable[tuple[Entry, list[Record]]] | None:
        """Return the files whose records may have changed, with all their records.

        Return None if the imports of all files must be resolved again.
        """
        changed: dict[str, list[Edge]] = {}
        for old, new in before.changes:
            if old is None or new is None:
                return None
            if old.object != new.object and _decisive_part(old, before.read) != _decisive_part(new, project.read):
                return None
            if _file_language(before.records_of(old, "parse", "file")) != _file_language(
                project.records_of(new, "parse", "file")
            ):
                return None
            imports = _import_edges(project.records_of(new, "symbols", "edge"))
            if imports != _import_edges(before.records_of(old, "symbols", "edge")):
                changed[_path_text(new)] = imports
            if _path_text(new).endswith(".rs") and _item_modules(imports) != _item_modules(
                _import_edges(before.records_of(old, "symbols", "edge"))
            ):
                return None
            if _path_text(new).endswith(_JVM_ENDINGS) and _old_definitions(before, old) != _new_definitions(
                project, new
            ):
                return None
        changed.pop("", None)
        return _changed_records(project, before, changed) if changed else ()


def _changed_records(
    project: Project, before: Before, changed: Mapping[str, list[Edge]]
) -> Iterator[tuple[Entry, list[Record]]]:
    """Yield the files whose records may have changed, with all their records. `changed` has the new imports by path.

    An import can also change the metrics of other files.
    """
    languages = _language_by_path(project)
    resolver = _make_resolver(project, languages)
    graph: _ImportGraph = {path: {} for path in languages}
    values: dict[str, _MetricValues] = {}
    for file, records in before.own_records():
        path = _path_text(file)
        graph[path] = _certain_targets(path, records)
        values[path] = {record.metric: record.value for record in records if isinstance(record, Metric)}
    edges: dict[str, list[Edge]] = {}
    for path, imports in changed.items():
        edges[path] = _resolve_imports(resolver, path, languages[path], imports) if path in languages else []
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


def _file_language(records: Iterable[Record]) -> str | None:
    return next((record.lang for record in records if isinstance(record, File)), None)


def _language_by_path(project: Project) -> dict[str, str]:
    language_of_files = (
        (_path_text(file), _file_language(records)) for file, records in project.records("parse", "file")
    )
    return {path: language for path, language in language_of_files if path and language is not None}


def _make_resolver(project: Project, languages: Mapping[str, str]) -> ProjectResolver:
    def read(path: str) -> bytes | None:
        file = project.find(path.encode())
        return project.read(file) if file is not None and file.size <= DOCUMENT_BYTES_MAX else None

    paths = [*languages, *filter(None, map(_path_text, project.outside))]
    return ProjectResolver(paths, read, lambda: _definitions_by_path(project), lambda: _modules_by_path(project))


def _modules_by_path(project: Project) -> dict[str, list[DeclaredModule]]:
    """Return the modules that Rust files declare, by path of the file."""
    return {
        _path_text(file): _item_modules(_import_edges(records))
        for file, records in project.records("symbols", "edge", holding='"is_module":true')
        if _path_text(file).endswith(".rs")
    }


def _item_modules(imports: Iterable[Edge]) -> list[DeclaredModule]:
    return [DeclaredModule(record.target, record.module_file) for record in imports if record.is_module]


def _definitions_by_path(project: Project) -> dict[str, JvmDefinitions]:
    """Return the definitions in Java, Kotlin and Scala files, by path of the file."""
    states = {
        _path_text(file): record.parse
        for file, records in project.records("parse", "file")
        for record in records
        if isinstance(record, File) and record.lang in _JVM_LANGUAGES
    }
    definitions = {path: JvmDefinitions("", frozenset(), states[path] != "ok") for path in states}
    for file, records in project.records("symbols", "symbol", holding='"scope":""'):
        path = _path_text(file)
        if path in states:
            definitions[path] = _make_definitions(path, records, is_partial=states[path] != "ok")
    return definitions


def _make_definitions(path: str, records: Iterable[Record], *, is_partial: bool) -> JvmDefinitions:
    symbols = [record for record in records if isinstance(record, Symbol) and not record.scope]
    packages = [record.qualified for record in symbols if record.symbol_type == "module"]
    return JvmDefinitions(
        package=".".join(packages) if path.endswith(".scala") else next(iter(packages), ""),
        names=frozenset(record.name for record in symbols if record.symbol_type not in ("import", "module")),
        is_partial=is_partial,
    )


def _old_definitions(before: Before, file: Entry) -> JvmDefinitions:
    states = [record.parse for record in before.records_of(file, "parse", "file") if isinstance(record, File)]
    return _make_definitions(
        _path_text(file), before.records_of(file, "symbols", "symbol"), is_partial=states != ["ok"]
    )


def _new_definitions(project: Project, file: Entry) -> JvmDefinitions:
    states = [record.parse for record in project.records_of(file, "parse", "file") if isinstance(record, File)]
    return _make_definitions(
        _path_text(file), project.records_of(file, "symbols", "symbol"), is_partial=states != ["ok"]
    )


def _decisive_part(file: Entry, read: Callable[[Entry], bytes]) -> Hashable:
    """Return the part of a file's content that affects how imports in other files resolve."""
    path = _path_text(file)
    return relevant_part(path, read(file)) if is_configuration_file(path) and file.size <= DOCUMENT_BYTES_MAX else None


def _import_edges(records: Iterable[Record]) -> list[Edge]:
    return [record for record in records if isinstance(record, Edge) and record.edge_type == "imports"]


def _resolve_imports(resolver: ProjectResolver, path: str, language: str, imports: Iterable[Edge]) -> list[Edge]:
    """Return a `depends` edge for each file to which an import can resolve.

    Edges with the same target and line are merged.
    """
    edges: dict[tuple[str, int], Edge] = {}
    for record in imports:
        resolved = resolver.resolve(path, language, record.target, is_module=record.is_module)
        for target in resolved.paths or (record.target,):
            known = edges.get((target, record.line))
            if known is None or (record.type_only, record.deferred) < (known.type_only, known.deferred):
                edges[target, record.line] = Edge(
                    path=path,
                    edge_type="depends",
                    source="",
                    target=target,
                    line=record.line,
                    resolution=resolved.resolution,
                    imported=record.target,
                    type_only=record.type_only,
                    deferred=record.deferred,
                    cell=record.cell,
                    cell_line=record.cell_line,
                )
    return list(edges.values())


def _certain_targets(path: str, records: Iterable[Record]) -> dict[str, bool]:
    """Map each file that `path` certainly imports, other than itself, to whether the import counts for cycles."""
    targets: dict[str, bool] = {}
    for record in records:
        if isinstance(record, Edge) and record.resolution in ("exact", "file") and record.target != path:
            counts = can_close_cycle(path, type_only=record.type_only, deferred=record.deferred)
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
