"""dependencies: which files of the snapshot each import leads to, and how files hang together through them.

Of every import a `depends` edge for each file that it may lead to, by line; one that leads out of the snapshot has the
name as written for its target. Then metrics of the graph, where they are not 0: `dependencies` and `dependents` count
the files at the other end, `cycle` the files of an import cycle, this one included. Only what leads to one file counts
there (resolution `exact` and `file`). Files whose names are not UTF-8 have no part in it.

Where the batch is restricted to paths, its imports lead to all files of the snapshot; what the files outside import is
not known, so that `dependents` and `cycle` are not told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codebatch.model.entry import path_fields
from codebatch.model.graph import components
from codebatch.model.record import Edge, File, Metric, Record
from codebatch.model.task import NoConfig
from codebatch_workers.api.project import Project
from codebatch_workers.api.protocols import TaskEnvironment
from codebatch_workers.resolution import DOCUMENT_BYTES_MAX, Resolver


def create(_environment: TaskEnvironment[NoConfig]) -> Dependencies:
    """The task; it has no configuration."""
    return Dependencies()


class Dependencies:
    """`edge` records, then `metric` records."""

    def run_project(self, project: Project) -> Iterator[Record]:
        """The records of all files, by path."""
        languages = {
            record.path: record.lang
            for _, records in project.records("parse", "file")
            for record in records
            if isinstance(record, File) and isinstance(record.path, str)
        }

        def read(path: str) -> bytes | None:
            file = project.find(path.encode())
            return project.read(file) if file is not None and file.size <= DOCUMENT_BYTES_MAX else None

        outside = [path for entry in project.outside if isinstance(path := path_fields(entry.path)[0], str)]
        resolver = Resolver([*languages, *outside], read)
        graph: dict[str, dict[str, None]] = {path: {} for path in languages}
        for file, records in project.records("symbols", "edge", holding='"edge_type":"imports"'):
            path = file.text
            if path not in languages:
                continue
            seen: set[tuple[str, int]] = set()
            for record in records:
                if not isinstance(record, Edge) or record.edge_type != "imports":
                    continue
                resolved = resolver.resolve(path, languages[path], record.target, is_module=record.is_module)
                for target in resolved.paths or (record.target,):
                    if (target, record.line) in seen:
                        continue
                    seen.add((target, record.line))
                    yield Edge(
                        path=path,
                        edge_type="depends",
                        source="",
                        target=target,
                        line=record.line,
                        resolution=resolved.resolution,
                        imported=record.target,
                    )
                    if resolved.resolution in ("exact", "file") and target != path:
                        graph[path][target] = None
        if not project.outside:
            yield from _metrics(graph)
            return
        for path, targets in graph.items():
            if targets:
                yield Metric(path=path, metric="dependencies", value=len(targets))


def _metrics(graph: Mapping[str, Mapping[str, None]]) -> Iterator[Metric]:
    dependents = dict.fromkeys(graph, 0)
    for targets in graph.values():
        for target in targets:
            dependents[target] += 1
    cycles = dict.fromkeys(graph, 0)
    for component in components({path: list(targets) for path, targets in graph.items()}):
        if len(component) > 1:
            cycles.update(dict.fromkeys(component, len(component)))
    for path, targets in graph.items():
        for metric, value in (
            ("dependencies", len(targets)),
            ("dependents", dependents[path]),
            ("cycle", cycles[path]),
        ):
            if value:
                yield Metric(path=path, metric=metric, value=value)
