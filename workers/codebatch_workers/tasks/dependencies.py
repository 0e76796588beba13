"""dependencies: which files of the snapshot each import leads to, and how files hang together through them.

Of every import a `depends` edge for each file that it may lead to, by line; one that leads out of the snapshot has the
name as written for its target. Then metrics of the graph, where they are not 0: `dependencies` and `dependents` count
the files at the other end, `cycle` the files of an import cycle, this one included. Only what leads to one file counts
there (resolution `exact` and `file`), and for cycles only what the loading of a file executes. Files whose names
are not UTF-8 have no part in it.

Where the batch is restricted to paths, its imports lead to all files of the snapshot; what the files outside import is
not known, so that `dependents` and `cycle` are not told.

While there are the same files, of the same languages, and nothing else that decides has changed, an import leads where
it led: then only files whose imports changed are resolved again, and the graph is counted anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import chain

from codebatch.model.entry import Entry, path_fields
from codebatch.model.graph import can_close_cycle, components
from codebatch.model.record import Edge, File, Metric, Record, Symbol
from codebatch.model.task import NoConfig
from codebatch_workers.api.before import Before
from codebatch_workers.api.project import Project
from codebatch_workers.api.protocols import TaskEnvironment
from codebatch_workers.resolution import (
    DOCUMENT_BYTES_MAX,
    Declared,
    JvmDefinitions,
    Resolver,
    decisive_part,
    is_decisive,
)

# Of each file the others that it imports, and whether such an import counts for cycles.
_Graph = dict[str, dict[str, bool]]
_Values = dict[str, int]

_JVM = frozenset({"java", "kotlin", "scala"})
_JVM_ENDINGS = (".java", ".kt", ".kts", ".scala", ".sc")


def create(_environment: TaskEnvironment[NoConfig]) -> Dependencies:
    """The task; it has no configuration."""
    return Dependencies()


class Dependencies:
    """`edge` records, then `metric` records."""

    def run_project(self, project: Project) -> Iterator[Record]:
        """The records of all files, by path."""
        languages = _languages(project)
        resolver = _resolver(project, languages)
        graph: _Graph = {path: {} for path in languages}
        for file, records in project.records("symbols", "edge", holding='"edge_type":"imports"'):
            path = _name(file)
            if path in languages:
                edges = _resolved(resolver, path, languages[path], _imports(records))
                graph[path] = _targets(path, edges)
                yield from edges
        for path, values in _metrics(graph, is_whole=not project.outside).items():
            yield from _metric_records(path, values)

    def update(self, project: Project, before: Before) -> Iterable[tuple[Entry, list[Record]]] | None:
        """The files whose imports changed, and those whose place in the graph did."""
        changed: dict[str, list[Edge]] = {}
        for then, now in before.changes:
            if then is None or now is None:
                return None
            if then.object != now.object and _decides(then, before.read) != _decides(now, project.read):
                return None
            if _language(before.records_of(then, "parse", "file")) != _language(
                project.records_of(now, "parse", "file")
            ):
                return None
            imports = _imports(project.records_of(now, "symbols", "edge"))
            if imports != _imports(before.records_of(then, "symbols", "edge")):
                changed[_name(now)] = imports
            if _name(now).endswith(".rs") and _modules_of(imports) != _modules_of(
                _imports(before.records_of(then, "symbols", "edge"))
            ):
                return None
            if _name(now).endswith(_JVM_ENDINGS) and _defined_before(before, then) != _defined_now(project, now):
                return None
        changed.pop("", None)
        return _updated(project, before, changed) if changed else ()


def _updated(
    project: Project, before: Before, changed: Mapping[str, list[Edge]]
) -> Iterator[tuple[Entry, list[Record]]]:
    """All files whose records may differ where the imports of some have changed and nothing else that decides has."""
    languages = _languages(project)
    resolver = _resolver(project, languages)
    graph: _Graph = {path: {} for path in languages}
    values: dict[str, _Values] = {}
    for file, records in before.own_records():
        path = _name(file)
        graph[path] = _targets(path, records)
        values[path] = {record.metric: record.value for record in records if isinstance(record, Metric)}
    edges: dict[str, list[Edge]] = {}
    for path, imports in changed.items():
        edges[path] = _resolved(resolver, path, languages[path], imports) if path in languages else []
        graph[path] = _targets(path, edges[path])
    metrics = _metrics(graph, is_whole=True)
    moved = {path for path in metrics.keys() | values.keys() if metrics.get(path, {}) != values.get(path, {})}
    for file, records in before.own_records() if moved - changed.keys() else ():
        path = _name(file)
        if path in moved and path not in changed:
            edges[path] = [record for record in records if isinstance(record, Edge)]
    for path in edges.keys() | moved:
        found = project.find(path.encode())
        assert found is not None, "the same files as before"
        yield found, [*edges.get(path, ()), *_metric_records(path, metrics.get(path, {}))]


def _name(file: Entry) -> str:
    """A path that is UTF-8, else nothing."""
    path = path_fields(file.path)[0]
    return path if isinstance(path, str) else ""


def _language(records: Iterable[Record]) -> str | None:
    return next((record.lang for record in records if isinstance(record, File)), None)


def _languages(project: Project) -> dict[str, str]:
    found = ((_name(file), _language(records)) for file, records in project.records("parse", "file"))
    return {path: language for path, language in found if path and language is not None}


def _resolver(project: Project, languages: Mapping[str, str]) -> Resolver:
    def read(path: str) -> bytes | None:
        file = project.find(path.encode())
        return project.read(file) if file is not None and file.size <= DOCUMENT_BYTES_MAX else None

    paths = [*languages, *filter(None, map(_name, project.outside))]
    return Resolver(paths, read, lambda: _definitions(project), lambda: _modules(project))


def _modules(project: Project) -> dict[str, list[Declared]]:
    """The modules that files of Rust declare, by path."""
    return {
        _name(file): _modules_of(_imports(records))
        for file, records in project.records("symbols", "edge", holding='"is_module":true')
        if _name(file).endswith(".rs")
    }


def _modules_of(imports: Iterable[Edge]) -> list[Declared]:
    return [Declared(record.target, record.module_file) for record in imports if record.is_module]


def _definitions(project: Project) -> dict[str, JvmDefinitions]:
    """What the files of Java, Kotlin and Scala define, by path."""
    states = {
        _name(file): record.parse
        for file, records in project.records("parse", "file")
        for record in records
        if isinstance(record, File) and record.lang in _JVM
    }
    found = {path: JvmDefinitions("", frozenset(), states[path] != "ok") for path in states}
    for file, records in project.records("symbols", "symbol", holding='"scope":""'):
        path = _name(file)
        if path in states:
            found[path] = _defined(path, records, is_partial=states[path] != "ok")
    return found


def _defined(path: str, records: Iterable[Record], *, is_partial: bool) -> JvmDefinitions:
    symbols = [record for record in records if isinstance(record, Symbol) and not record.scope]
    packages = [record.qualified for record in symbols if record.symbol_type == "module"]
    return JvmDefinitions(
        package=".".join(packages) if path.endswith(".scala") else next(iter(packages), ""),
        names=frozenset(record.name for record in symbols if record.symbol_type not in ("import", "module")),
        is_partial=is_partial,
    )


def _defined_before(before: Before, file: Entry) -> JvmDefinitions:
    states = [record.parse for record in before.records_of(file, "parse", "file") if isinstance(record, File)]
    return _defined(_name(file), before.records_of(file, "symbols", "symbol"), is_partial=states != ["ok"])


def _defined_now(project: Project, file: Entry) -> JvmDefinitions:
    states = [record.parse for record in project.records_of(file, "parse", "file") if isinstance(record, File)]
    return _defined(_name(file), project.records_of(file, "symbols", "symbol"), is_partial=states != ["ok"])


def _decides(file: Entry, read: Callable[[Entry], bytes]) -> Hashable:
    """What of a file decides where the imports of others lead."""
    path = _name(file)
    return decisive_part(path, read(file)) if is_decisive(path) and file.size <= DOCUMENT_BYTES_MAX else None


def _imports(records: Iterable[Record]) -> list[Edge]:
    return [record for record in records if isinstance(record, Edge) and record.edge_type == "imports"]


def _resolved(resolver: Resolver, path: str, language: str, imports: Iterable[Edge]) -> list[Edge]:
    """A `depends` edge for each file that an import may lead to, once a line."""
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


def _targets(path: str, records: Iterable[Record]) -> dict[str, bool]:
    """The other files that a file leads to for sure, and whether any such import counts for cycles."""
    targets: dict[str, bool] = {}
    for record in records:
        if isinstance(record, Edge) and record.resolution in ("exact", "file") and record.target != path:
            counts = can_close_cycle(path, type_only=record.type_only, deferred=record.deferred)
            targets[record.target] = targets.get(record.target, False) or counts
    return targets


def _metrics(graph: _Graph, *, is_whole: bool) -> dict[str, _Values]:
    """The metrics of each file that are not 0; where the graph is not the whole one, what can be told of it."""
    dependents: Counter[str] = Counter()
    cycles: dict[str, int] = {}
    if is_whole:
        dependents.update(chain.from_iterable(graph.values()))
        # What leads nowhere is in no cycle.
        leading = {
            path: [each for each, counts in targets.items() if counts and graph[each]]
            for path, targets in graph.items()
            if targets
        }
        for component in components(leading):
            if len(component) > 1:
                cycles.update(dict.fromkeys(component, len(component)))
    found: dict[str, _Values] = {}
    for path, targets in graph.items():
        if not targets and path not in dependents:
            continue
        every = {"dependencies": len(targets), "dependents": dependents[path], "cycle": cycles.get(path, 0)}
        if values := {metric: value for metric, value in every.items() if value}:
            found[path] = values
    return found


def _metric_records(path: str, values: _Values) -> Iterator[Metric]:
    for metric, value in values.items():
        yield Metric(path=path, metric=metric, value=value)
