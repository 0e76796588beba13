"""Tests of reuse over random histories of a tree with the real tasks (SPEC.md "Reuse").

A run that reuses results must give the same output as a run that does not, and must execute no more than necessary.
After each step the tree is run in a store with all earlier batches, and again in an empty store. CODEBATCH_HISTORIES
sets the number of histories, CODEBATCH_HISTORIES_FROM the first seed.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace

from codebatch.coordinator.analysis.execution import RunOutcome
from codebatch.errors import InvalidInput, NothingToDo, StoreNotFound
from codebatch.model.plan import Plan, plan_items
from codebatch.operations.maintenance.cache_misses import explain_misses
from codebatch.operations.runs.collection import collect_garbage
from codebatch.operations.runs.run_result import RunResult
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.query.sources.records import BatchRecords
from codebatch.store.batches.batch_directory import BatchDir, batch_ids, iter_batches, load_batch_snapshot
from codebatch.store.batches.store_directory import StoreDir, open_store
from codebatch.store.results.outputs import TaskOutput, current_outputs
from codebatch.system.files.files import RealFiles
from tests.operations.histories import History
from tests.support.command_line import write
from tests.support.inline_workers import inline, resume, run
from tests.support.invariants import check_chains, check_registers, merged

FIRST = int(os.environ.get("CODEBATCH_HISTORIES_FROM", "100"))
HISTORIES = int(os.environ.get("CODEBATCH_HISTORIES", "2"))
STEPS = 12
BASES_MAX = 4

Key = tuple[object, ...]


@pytest.fixture(autouse=True)
def _inline() -> Iterator[None]:
    with inline():
        yield


def test_short_history_with_reuse_matches_runs_without_reuse(tmp_path: Path) -> None:
    follow_history(tmp_path, seed=1, steps=6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FIRST, FIRST + HISTORIES))
def test_long_history_with_reuse_matches_runs_without_reuse(tmp_path: Path, seed: int) -> None:
    follow_history(tmp_path, seed=seed, steps=STEPS)


def test_results_absent_from_a_near_base_are_reused_from_an_older_base(tmp_path: Path) -> None:
    """The nearer base has results of a and c, the older one of a, b and c."""
    for name in "abcd":
        write(tmp_path / "tree" / f"{name}.py", "import os\n")
    run(tmp_path / "tree", tmp_path / "store")
    write(tmp_path / "tree" / "b.py", "import sys\n")
    run(tmp_path / "tree", tmp_path / "store")
    write(tmp_path / "tree" / "b.py", "import os\n")
    write(tmp_path / "tree" / "d.py", "import re\n")
    assert run(tmp_path / "tree", tmp_path / "store").executed == RunOutcome(0, 12, 4)


def follow_history(root: Path, *, seed: int, steps: int) -> None:
    """Check a history from a seed after every step. In every third history the clock is unreliable."""
    generator = random.Random(-seed)
    history = History(root / "tree", seed)
    known = Known()
    change = "begin"
    with pytest.MonkeyPatch.context() as patch:
        if seed % 3 == 0:
            patch.setattr("codebatch.operations.runs.planning.wall_ns", lambda: generator.randrange(2 * 10**18))
        for number in range(steps):
            if generator.random() < 0.4:
                generator.choice(DISTURBANCES)(root, known, generator)
            place = "tree"
            if generator.random() < 0.1:
                shutil.copytree(root / "tree", root / "other", symlinks=True)
                place = "other"
            path = generator.choice(history.places()) if generator.random() < 0.15 else "."
            _compare(root, known, root / place, path, f"seed {seed}, step {number}: {change}")
            shutil.rmtree(root / "other", ignore_errors=True)
            change = history.step()
            if not history.files():
                return


def _compare(root: Path, known: Known, tree: Path, path: str, description: str) -> None:
    try:
        result = run(tree / path, root / "store", configured=tree)
    except (InvalidInput, NothingToDo) as error:  # ruff cannot read its configuration, or there is no file to analyse.
        with pytest.raises(type(error)):
            run(tree / path, root / "anew", configured=tree)
        return
    known.check(result, description)
    if not result.is_complete:
        assert resume(tree, result).result_digest == result.result_digest, description
    fresh = run(tree / path, root / "anew", configured=tree, reuses=False)
    assert fresh.executed.reused == 0
    assert result.result_digest == fresh.result_digest, description
    assert _batch_content(result.batch) == _batch_content(fresh.batch), description
    shutil.rmtree(root / "anew")


def _leave_unfinished(root: Path, known: Known, generator: random.Random) -> None:
    task = generator.choice(["parse", "lint", "symbols"])
    with contextlib.suppress(InvalidInput):  # ruff may be unable to read its configuration.
        known.check(run(root / "tree", root / "store", task=task), f"only {task}", (task,))


def _collect(root: Path, known: Known, generator: random.Random) -> None:
    with contextlib.suppress(StoreNotFound):
        collect_garbage(open_store(RealFiles(), root / "store"), keep=generator.randint(1, 3))


def _remove_a_batch(root: Path, known: Known, generator: random.Random) -> None:
    batches = sorted(root.glob("store/batches/batch-*"))
    if batches:
        shutil.rmtree(generator.choice(batches))


def _remove_caches(root: Path, known: Known, generator: random.Random) -> None:
    shutil.rmtree(root / "store" / "cache", ignore_errors=True)


DISTURBANCES = (_leave_unfinished, _leave_unfinished, _collect, _remove_a_batch, _remove_caches)


def _batch_content(batch: BatchDir) -> tuple[dict[str, bytes], list[TaskOutput]]:
    """Return the bytes of the outputs of a batch, and its manifest without the counts of reused results."""
    if not (batch.root / "settled.json").exists():
        check_registers(batch, batch.plan())
        check_chains(batch, batch.plan())
    outputs = current_outputs(batch)
    assert outputs is not None
    tasks = [
        replace(task, shards=tuple(replace(shard, reused=0) for shard in task.shards))
        for task in outputs.manifest.tasks
    ]
    return merged(batch).files, tasks


@dataclass(slots=True)
class Known:
    """The knowledge of an independent reader about the batches of a store: cache keys of results, and sources."""

    results: dict[str, set[Key]] = field(default_factory=dict)
    places: dict[str, tuple[object, str]] = field(default_factory=dict)

    def check(self, result: RunResult, description: str, tasks: tuple[str, ...] = ()) -> None:
        """Check the executed results against the cache keys, and record the batch."""
        batch = result.batch
        keys = _keys(result.store, batch)
        if result.action == "new":
            bases = self._bases(result.store, batch)
            assert list(batch.about.bases) == bases, f"{description}: {batch.about.bases} and not {bases}"
        if result.action in ("new", "resumed") and result.executed.reused + result.executed.executed:
            keys_of_bases = set[Key]().union(*(self.results.get(base, ()) for base in batch.about.bases))
            missing = sorted(pair for pair, key in keys.items() if key not in keys_of_bases)
            _check_executed(result, missing, tasks, f"{description}: {missing}")
        for candidate in iter_batches(
            result.store
        ):  # A batch of another source may have been continued and then adopted.
            if candidate.about.plan_digest == batch.about.plan_digest:
                self.places[candidate.id] = candidate.about.sources, candidate.about.pipeline
                self.results[candidate.id] = {keys[pair] for pair in _results(result.store, candidate)}

    def _bases(self, store: StoreDir, batch: BatchDir) -> list[str]:
        """Return expected bases: of the same source and pipeline, then of the same source, then any; latest first."""
        preferred = batch.about.sources, batch.about.pipeline
        candidates = sorted((candidate for candidate in batch_ids(store) if self.results.get(candidate)), reverse=True)
        candidates.sort(
            key=lambda candidate: (self.places[candidate] != preferred, self.places[candidate][0] != preferred[0])
        )
        return [candidate for candidate in candidates if candidate != batch.id][:BASES_MAX]


def _check_executed(
    result: RunResult, missing: list[tuple[bytes, str]], tasks: tuple[str, ...], description: str
) -> None:
    """Compare the executed results of file tasks, and the answer of `explain-miss`, with the results that no base has.

    If `tasks` is given, only these tasks are compared: the others are not done, or were done before.
    """
    scopes = {task.name: task.scope for task in result.batch.plan().tasks}
    misses, _ = explain_misses(result.store, result.batch, TaskCatalogue(), note=lambda _: None)
    file_tasks = [task for task in misses.tasks if scopes[task.task] == "file"]
    assert sum(task.reused for task in file_tasks) == result.executed.reused, description
    assert sum(task.executed for task in file_tasks) == result.executed.executed, description
    for task in (task for task in file_tasks if not tasks or task.task in tasks):
        causes = {reason.cause for reason in task.reasons}
        assert task.executed == sum(task.task == name for _, name in missing), f"{description}: {task}"
        assert causes.isdisjoint({"unknown", "damaged"}), f"{description}: {task}"


def _keys(store: StoreDir, batch: BatchDir) -> dict[tuple[bytes, str], Key]:
    """Return everything that determines a result, by path and file task."""
    plan = batch.plan()
    tasks = {task.name: task for task in plan.tasks}
    keys: dict[tuple[bytes, str], Key] = {}
    for item, entry in enumerate(plan_items(load_batch_snapshot(store, batch).entries, plan.paths)):
        contexts = plan.item_contexts(item)
        for name, task in tasks.items():
            if task.scope == "file":
                names = {context for context in plan.needed_for(name) for context in tasks[context].contexts}
                decides = task.version, task.implementation_digest, repr(task.config), repr(task.tools)
                keys[entry.path, name] = (
                    name,
                    decides,
                    entry,
                    repr(sorted((context, contexts.get(context)) for context in names)),
                )
    return keys


def _results(store: StoreDir, batch: BatchDir) -> Iterator[tuple[bytes, str]]:
    records = BatchRecords(store, batch)
    plan: Plan = records.plan
    for name in set(plan.task_names) - set(plan.project_tasks):
        for item, entry in enumerate(records.items):
            lines = records.source.item_lines(name, item)
            if lines is not None and b'{"kind":"failure"' not in lines:
                yield entry.path, name
