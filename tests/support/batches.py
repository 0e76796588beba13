"""A small batch on any disk: generated files, five cheap tasks, and a runner whose behavior depends on paths.

For a path that contains `fails`, `symbols` fails, and so does `lint`, which needs it. A path that contains `heals`
fails in the same way until the world is healed. A path that contains `kills` kills the worker that executes `parse`.
`graph` and `report` are project tasks that report a value for the records of each file. If `parse` failed for any file,
`graph` fails.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from codebatch.model.analysis.shard_boundaries import cut_shards
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.entry import Entry, SnapshotId, encode_entry
from codebatch.model.plan import Plan, PlannedTask, plan_digest, task_key
from codebatch.model.record import Failure, Metric, Record
from codebatch.model.shard import ShardRule
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.store.batches.batch_directory import BatchDir, BatchId, Checkout, create_batch
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.store.snapshots.index_frames import make_snapshot_index
from codebatch.store.snapshots.snapshots import SnapshotSource, publish_snapshot
from codebatch_workers.api.before import Before
from codebatch_workers.api.project import Project
from codebatch_workers.api.protocols import ProjectTask
from codebatch_workers.runtime.execution import TaskRunner
from codebatch_workers.runtime.results import TaskFailure, TaskResult
from codebatch_workers.runtime.shard_parts import TermsKeeper
from codebatch_workers.syntax.source import SourceFile

NEEDS: dict[str, tuple[str, ...]] = {
    "parse": (),
    "symbols": (),
    "graph": ("parse", "symbols"),
    "lint": ("symbols",),
    "report": ("graph", "lint"),
}
PROJECT = ("graph", "report")
FILE_TASKS = tuple(name for name in NEEDS if name not in PROJECT)
FAILS = b"fails"
HEALS = b"heals"
KILLS = b"kills"


def make_paths(chance: random.Random, *, items: int, failing: int, healing: int, killing: int) -> list[bytes]:
    """Return paths of files, some of which make their tasks fail or kill their worker."""
    kinds = [FAILS] * failing + [HEALS] * healing + [KILLS] * killing
    kinds = (kinds + [b"does"] * items)[: max(items, len(kinds))]
    chance.shuffle(kinds)
    return [b"%s/%03d" % (kind, number) for number, kind in enumerate(kinds)]


def make_batch(
    store: StoreDir,
    paths: Sequence[bytes],
    *,
    shard_items: int,
    bases: Sequence[BatchId] = (),
    at_ns: int = 0,
    for_comparison: bool = False,
    contents: Mapping[bytes, bytes] | None = None,
    sources: Sequence[bytes] = (),
    commit: str = "",
) -> BatchDir:
    """Create a batch over files with these paths. A shard has `shard_items` items; the last one may have fewer.

    `contents` has the content of each path. By default, it is the path, three times.
    """
    contents = {path: path * 3 for path in paths} if contents is None else contents
    with PackWriter(store.objects()) as writer:
        entries = sorted(
            Entry(path, "file", executable=False, size=len(contents[path]), object=writer.add(contents[path]))
            for path in paths
        )
    index = make_snapshot_index(map(encode_entry, entries))
    source = SnapshotSource(base="", roots=(), listing="")
    document = publish_snapshot(store.files, store.root, index, source=source, created_at="")
    tasks = _tasks()
    rule = ShardRule(files_average=shard_items, files_min=shard_items, files_max=shard_items)
    plan = Plan(
        digest=plan_digest(index.digest, tasks),
        snapshot_id=SnapshotId(document.snapshot_id),
        snapshot_digest=index.digest,
        pipeline="proof",
        tasks=tasks,
        shard_rule=rule,
        shards=tuple(cut_shards(entries, rule)),
        contexts={},
    )
    return create_batch(
        store,
        plan,
        sources=sources,
        bases=bases,
        checkout=Checkout(commit, False),
        at_ns=at_ns,
        for_comparison=for_comparison,
    )


class CheapRunner(TaskRunner):
    """A runner that behaves as the paths of files require, within microseconds, without the installed tasks."""

    def __init__(
        self,
        tasks: Sequence[PlannedTask],
        die: Callable[[], None],
        is_healed: Callable[[], bool],
        keep: TermsKeeper | None = None,
    ) -> None:
        super().__init__(TaskCatalogue(), tasks, Path(), keep=keep)
        self._die = die
        self._is_healed = is_healed

    def set_up(self, tasks: Sequence[str]) -> None:
        pass

    def run_item(
        self, file: SourceFile, tasks: Sequence[str], begin: Callable[[str], None] | None = None
    ) -> dict[str, TaskResult]:
        results: dict[str, TaskResult] = {}
        for name in tasks:
            if begin is not None:
                begin(name)
            if KILLS in file.path and name == "parse":
                self._die()
            must_fail = FAILS in file.path or (HEALS in file.path and not self._is_healed())
            if must_fail and name == "symbols":
                results[name] = TaskFailure(reason="exception", evidence="the path says so")
            elif any(isinstance(results.get(need), TaskFailure) for need in NEEDS[name]):
                results[name] = TaskFailure(reason="needs", evidence="")
            else:
                results[name] = [
                    Metric(path=file.path.decode(), metric=f"{name}-{number}", value=len(file.content))
                    for number in range(len(file.path) % 3 + 1)
                ]
        return results

    def complete_results(
        self, name: str, files: Sequence[SourceFile], results: Sequence[TaskResult]
    ) -> list[TaskResult]:
        return [*results]

    def _ready_task(self, name: str) -> ProjectTask:
        return _DigestingTask(NEEDS[name])


class _DigestingTask:
    """A project task that reports a digest of each file's records of the tasks it needs. It fails if `parse` failed."""

    def __init__(self, needs: Sequence[str]) -> None:
        self._needs = needs

    def run_project(self, project: Project) -> Iterator[Record]:
        for need in self._needs:
            for file, records in project.records(need):
                if any(isinstance(record, Failure) and record.task == "parse" for record in records):
                    raise RuntimeError("parse failed")
                yield _metric(file, need, records)

    def update(self, project: Project, before: Before) -> list[tuple[Entry, list[Record]]]:
        inputs = [
            (now, need, project.records_of(now, need)) for _, now in before.changes if now for need in self._needs
        ]
        metrics: dict[Entry, list[Record]] = {now: [] for now, _, _ in inputs}
        for now, need, records in inputs:
            if records:
                metrics[now].append(_metric(now, need, records))
        return list(metrics.items())


def _metric(file: Entry, need: str, records: list[Record]) -> Metric:
    return Metric(path=file.text, metric=need, value=int(digest_bytes(repr(records).encode())[:8], 16))


def _tasks() -> tuple[PlannedTask, ...]:
    planned: dict[str, PlannedTask] = {}
    for name, needs in NEEDS.items():
        key = task_key(
            name=name,
            version="1",
            implementation_digest=Digest("0" * 64),
            config={},
            tools={},
            needs=[(need, planned[need].key) for need in needs],
        )
        planned[name] = PlannedTask(
            name=name,
            version="1",
            scope="project" if name in PROJECT else "file",
            needs=needs,
            implementation_digest=Digest("0" * 64),
            config={},
            tools={},
            contexts=(),
            key=key,
        )
    return tuple(planned.values())
