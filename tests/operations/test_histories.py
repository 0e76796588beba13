"""Histories of a tree with the real tasks: a run that takes results over says what one says that does not, and does no
more than it must (SPEC.md "Reuse").

At each step the tree is run in a store that has all batches before, and anew in an empty one. CODEBATCH_HISTORIES says
how many histories, for a longer look, and CODEBATCH_HISTORIES_FROM which is the first.
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
    """The nearer one has a and c, the further one a, b and c."""
    for name in "abcd":
        write(tmp_path / "tree" / f"{name}.py", "import os\n")
    run(tmp_path / "tree", tmp_path / "store")
    write(tmp_path / "tree" / "b.py", "import sys\n")
    run(tmp_path / "tree", tmp_path / "store")
    write(tmp_path / "tree" / "b.py", "import os\n")
    write(tmp_path / "tree" / "d.py", "import re\n")
    assert run(tmp_path / "tree", tmp_path / "store").executed == RunOutcome(0, 12, 4)


def follow_history(root: Path, *, seed: int, steps: int) -> None:
    """A history from its seed, looked at after every step. In every third of them no clock can be relied on."""
    chance = random.Random(-seed)
    history = History(root / "tree", seed)
    known = Known()
    said = "begin"
    with pytest.MonkeyPatch.context() as patch:
        if seed % 3 == 0:
            patch.setattr("codebatch.operations.runs.planning.wall_ns", lambda: chance.randrange(2 * 10**18))
        for number in range(steps):
            if chance.random() < 0.4:
                chance.choice(DISTURBANCES)(root, known, chance)
            place = "tree"
            if chance.random() < 0.1:
                shutil.copytree(root / "tree", root / "other", symlinks=True)
                place = "other"
            path = chance.choice(history.places()) if chance.random() < 0.15 else "."
            _compare(root, known, root / place, path, f"seed {seed}, step {number}: {said}")
            shutil.rmtree(root / "other", ignore_errors=True)
            said = history.step()
            if not history.files():
                return


def _compare(root: Path, known: Known, tree: Path, path: str, told: str) -> None:
    try:
        ran = run(tree / path, root / "store", configured=tree)
    except (InvalidInput, NothingToDo) as error:  # A configuration of ruff's that cannot be read, or nothing to do.
        with pytest.raises(type(error)):
            run(tree / path, root / "anew", configured=tree)
        return
    known.check(ran, told)
    if not ran.is_complete:
        assert resume(tree, ran).result_digest == ran.result_digest, told
    anew = run(tree / path, root / "anew", configured=tree, reuses=False)
    assert anew.executed.reused == 0
    assert ran.result_digest == anew.result_digest, told
    assert _batch_content(ran.batch) == _batch_content(anew.batch), told
    shutil.rmtree(root / "anew")


def _leave_unfinished(root: Path, known: Known, chance: random.Random) -> None:
    task = chance.choice(["parse", "lint", "symbols"])
    with contextlib.suppress(InvalidInput):  # A configuration of ruff's that cannot be read.
        known.check(run(root / "tree", root / "store", task=task), f"only {task}", (task,))


def _collect(root: Path, known: Known, chance: random.Random) -> None:
    with contextlib.suppress(StoreNotFound):
        collect_garbage(open_store(RealFiles(), root / "store"), keep=chance.randint(1, 3))


def _remove_a_batch(root: Path, known: Known, chance: random.Random) -> None:
    batches = sorted(root.glob("store/batches/batch-*"))
    if batches:
        shutil.rmtree(chance.choice(batches))


def _remove_caches(root: Path, known: Known, chance: random.Random) -> None:
    shutil.rmtree(root / "store" / "cache", ignore_errors=True)


DISTURBANCES = (_leave_unfinished, _leave_unfinished, _collect, _remove_a_batch, _remove_caches)


def _batch_content(batch: BatchDir) -> tuple[dict[str, bytes], list[TaskOutput]]:
    """All that a batch says: the bytes of its outputs, and what the manifest counts, but for what was served."""
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
    """What an independent reader knows of the batches of a store: the keys of the results of each, and its place."""

    results: dict[str, set[Key]] = field(default_factory=dict)
    places: dict[str, tuple[object, str]] = field(default_factory=dict)

    def check(self, ran: RunResult, told: str, tasks: tuple[str, ...] = ()) -> None:
        """Hold what was executed against what the keys say, and take note of the batch."""
        batch = ran.batch
        keys = _keys(ran.store, batch)
        if ran.action == "new":
            bases = self._bases(ran.store, batch)
            assert list(batch.about.bases) == bases, f"{told}: {batch.about.bases} and not {bases}"
        if ran.action in ("new", "resumed") and ran.executed.reused + ran.executed.executed:
            held = set[Key]().union(*(self.results.get(base, ()) for base in batch.about.bases))
            missing = sorted(pair for pair, key in keys.items() if key not in held)
            _check_executed(ran, missing, tasks, f"{told}: {missing}")
        for each in iter_batches(ran.store):  # One of another place may have been continued, and then adopted.
            if each.about.plan_digest == batch.about.plan_digest:
                self.places[each.id] = each.about.sources, each.about.pipeline
                self.results[each.id] = {keys[pair] for pair in _results(ran.store, each)}

    def _bases(self, store: StoreDir, batch: BatchDir) -> list[str]:
        """Those that a new batch should have: of its place and pipeline, of its place, any; the latest first."""
        wanted = batch.about.sources, batch.about.pipeline
        there = sorted((each for each in batch_ids(store) if self.results.get(each)), reverse=True)
        there.sort(key=lambda each: (self.places[each] != wanted, self.places[each][0] != wanted[0]))
        return [each for each in there if each != batch.id][:BASES_MAX]


def _check_executed(ran: RunResult, missing: list[tuple[bytes, str]], tasks: tuple[str, ...], told: str) -> None:
    """Hold what was executed of files, and what `explain-miss` says of it, against what no base has.

    Of some tasks alone where the others are not done, or were done before.
    """
    scopes = {task.name: task.scope for task in ran.batch.plan().tasks}
    asked, _ = explain_misses(ran.store, ran.batch, TaskCatalogue(), note=lambda _: None)
    of_files = [task for task in asked.tasks if scopes[task.task] == "file"]
    assert sum(task.reused for task in of_files) == ran.executed.reused, told
    assert sum(task.executed for task in of_files) == ran.executed.executed, told
    for task in (task for task in of_files if not tasks or task.task in tasks):
        fields = {each.field for reason in task.reasons for each in reason.differences}
        assert task.executed == sum(task.task == name for _, name in missing), f"{told}: {task}"
        assert fields.isdisjoint({"unknown", "not_taken", "base"}), f"{told}: {task}"


def _keys(store: StoreDir, batch: BatchDir) -> dict[tuple[bytes, str], Key]:
    """All that decides a result, by path and file task."""
    plan = batch.plan()
    tasks = {task.name: task for task in plan.tasks}
    found: dict[tuple[bytes, str], Key] = {}
    for item, entry in enumerate(plan_items(load_batch_snapshot(store, batch).entries, plan.paths)):
        of_item = plan.item_contexts(item)
        for name, task in tasks.items():
            if task.scope == "file":
                seen = {context for each in plan.needed_for(name) for context in tasks[each].contexts}
                decides = task.version, task.implementation_digest, repr(task.config), repr(task.tools)
                found[entry.path, name] = (
                    name,
                    decides,
                    entry,
                    repr(sorted((each, of_item.get(each)) for each in seen)),
                )
    return found


def _results(store: StoreDir, batch: BatchDir) -> Iterator[tuple[bytes, str]]:
    records = BatchRecords(store, batch)
    plan: Plan = records.plan
    for name in set(plan.task_names) - set(plan.project_tasks):
        for item, entry in enumerate(records.items):
            lines = records.source.item_lines(name, item)
            if lines is not None and b'{"kind":"failure"' not in lines:
                yield entry.path, name
