"""Profile a worker over a tree, in one process: `python -m bench profile DIR [--functions]`.

Take a snapshot of the tree into a new store, plan `full`, and take every unit through the steps of a worker. Each step
is timed by CPU and wall clock. Values that tasks share (text, tree, captures) are computed before the tasks run. With
`--functions`, the same work runs under cProfile instead, which exaggerates the share of Python code.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from codebatch.coordinator.analysis.planning import make_plan, resolve_tasks
from codebatch.model.entry import Entry
from codebatch.model.outcome import WorkUnit
from codebatch.model.plan import Plan, plan_items
from codebatch.model.shard import ProjectWork, Shard, ShardRule
from codebatch.model.task import BUILT_IN_TASKS
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.snapshotting.selection import SourceRules
from codebatch.snapshotting.snapshot import take_snapshot
from codebatch.store import layout
from codebatch.store.batches.holders import new_holder_id
from codebatch.store.batches.store_directory import StoreDir, create_store
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import OutcomeCommitter, OutcomeRegisters
from codebatch.store.snapshots.snapshots import load_snapshot
from codebatch.system.files.files import RealFiles
from codebatch_workers.runtime.execution import TaskRunner
from codebatch_workers.runtime.project import BatchProject
from codebatch_workers.runtime.results import ReusedRecords, TaskFailure, UnitResults
from codebatch_workers.runtime.sources import iter_sources
from codebatch_workers.syntax.source import SourceFile

_FUNCTIONS_SHOWN = 40


class Clock:
    """Seconds by step: CPU time, including reaped children, and wall-clock time."""

    def __init__(self) -> None:
        self.cpu: dict[str, float] = defaultdict(float)
        self.wall: dict[str, float] = defaultdict(float)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Charge the enclosed code to a step."""
        wall, cpu = time.perf_counter(), _cpu_seconds()
        try:
            yield
        finally:
            self.wall[name] += time.perf_counter() - wall
            self.cpu[name] += _cpu_seconds() - cpu


class Pass:
    """All units of a plan, processed one after the other as by a worker."""

    def __init__(self, store: StoreDir, plan: Plan, items: Sequence[Entry], scratch: Path, clock: Clock) -> None:
        self._plan = plan
        self._items = items
        self._clock = clock
        self._objects = store.objects()
        self._runner = TaskRunner(TaskCatalogue(), plan.tasks, scratch)
        self._files, self._root = store.files, store.batches / "profile"
        for name in (layout.RESULTS, layout.OUTCOMES):
            store.files.make_directory(self._root / name)
        self._committer = OutcomeCommitter(store.files, self._root, new_holder_id())
        self.records: Counter[str] = Counter()

    def run(self) -> None:
        """Run every unit of files, then every project task."""
        file_tasks = tuple(name for name in self._plan.task_names if name not in self._plan.project_tasks)
        for shard in self._plan.shards:
            self._run_unit(shard, WorkUnit(shard=shard.id, start=0, end=shard.items, tasks=file_tasks))
        for name in self._plan.project_tasks:
            with self._clock.step(f"task {name}, of the project"):
                self._run_project(name)
        self._committer.close()

    def _run_project(self, name: str) -> None:
        outcomes = OutcomeRegisters(self._files, self._root)
        ledger = load_ledger(self._plan, outcomes)
        project = BatchProject(
            self._plan,
            self._items,
            ledger,
            outcomes,
            read=self._read,
            needs=self._plan.task_names,
            contexts=self._plan.contexts,
        )
        unit = WorkUnit(shard=ProjectWork(name).id, start=0, end=1, tasks=(name,))
        encoded = self._runner.run_project(unit, project, self._plan.shards, ledger.inputs_digest(name))
        assert encoded.outcome.type == "result", encoded.evidence
        self._committer.commit_outcomes([encoded], epoch=1, round_=1)
        self.records.update(encoded.outcome.counts.kinds)

    def _run_unit(self, shard: Shard, unit: WorkUnit) -> None:
        step = self._clock.step
        done = UnitResults(start=0, results={name: [] for name in unit.tasks})
        sources = []
        indexes = range(shard.start, shard.end)
        loaded = iter_sources(((self._items[index], self._plan.item_contexts(index)) for index in indexes), self._read)
        for index in indexes:
            entry = self._items[index]
            with step("read object, decompress, verify"):
                source = next(loaded)
            assert not isinstance(source, TaskFailure), source
            self._share(source)
            for name in unit.tasks:
                with step(f"task {name}, its own part"):
                    done.results[name].append(self._runner.run_item(source, (name,))[name])
            with step("release the tree"):
                source.release()
            sources.append(source)
            done.items.append(entry)
        for name in unit.tasks:
            with step(f"task {name}, batched part (ruff)"):
                partial = [result for result in done.results[name] if not isinstance(result, ReusedRecords)]
                done.results[name] = [*self._runner.complete_results(name, sources, partial)]
        with step("encode records, count, compress"):
            encoded = list(self._runner.encode_unit(unit, done))
        with step("commit"):
            commit = self._committer.commit_outcomes(encoded, epoch=1, round_=1)
        for outcome in commit.outcomes:
            self.records.update(outcome.counts.kinds)

    def _share(self, source: SourceFile) -> None:
        """Compute values that several tasks use, each charged to a step of its own."""
        for name, ask in _SHARED:
            with self._clock.step(name):
                ask(source)

    def _read(self, entry: Entry) -> bytes:
        return self._objects.read(entry.object, entry.size)


_SHARED: tuple[tuple[str, Callable[[SourceFile], object]], ...] = (
    ("classify, decode, find lines", lambda source: (source.file_class, source.line_starts, source.is_ascii)),
    ("tree-sitter: parse", lambda source: source.tree),
    ("tree-sitter: query, sort captures", lambda source: source.captures),
)


def main(arguments: Sequence[str]) -> None:
    """Profile one tree and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench profile", description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--functions", action="store_true", help="cProfile: by function")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="codebatch-profile-") as name:
        scratch, files, clock = Path(name).resolve(), RealFiles(), Clock()
        os.environ["RAYON_NUM_THREADS"] = "1"
        store, _ = create_store(files, scratch / "store")
        with clock.step("(snapshot)"):
            result = take_snapshot(files, store.root, [options.directory], SourceRules(), now=time.time)
        with clock.step("(plan)"):
            snapshot = load_snapshot(files, store.root, result.snapshot_id)
            catalogue = TaskCatalogue()
            tasks = resolve_tasks(catalogue, BUILT_IN_TASKS)
            plan = make_plan(catalogue, snapshot, "full", tasks, ShardRule())
        one = Pass(store, plan, plan_items(snapshot.entries), scratch, clock)
        if options.functions:
            with cProfile.Profile() as profile:
                one.run()
            pstats.Stats(profile).sort_stats("tottime").print_stats(_FUNCTIONS_SHOWN)
        else:
            one.run()
            print(_table(clock, one.records))


def _table(clock: Clock, records: Counter[str]) -> str:
    """Return a table of CPU seconds, share of CPU, and wall seconds. Steps in parentheses precede the execute phase."""
    counted_in = [name for name in clock.cpu if not name.startswith("(")]
    whole = sum(clock.cpu[name] for name in counted_in)
    wall = sum(clock.wall[name] for name in counted_in)
    lines = [f"{'':42} {'CPU s':>8} {'share':>7} {'wall s':>8}"]
    for name, seconds in clock.cpu.items():
        share = f"{seconds / whole:7.1%}" if name in counted_in else " " * 7
        lines.append(f"{name:42} {seconds:8.3f} {share} {clock.wall[name]:8.3f}")
    counted = ", ".join(f"{count:,} {kind}" for kind, count in sorted(records.items()))
    return "\n".join(
        [*lines, f"{'sum of the execute phase':42} {whole:8.3f} {'':7} {wall:8.3f}", f"records: {counted}"]
    )


def _cpu_seconds() -> float:
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


if __name__ == "__main__":
    main(sys.argv[1:])
