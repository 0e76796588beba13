"""Reuse of results of older batches. It is decided before any work begins.

There are two cases. If an older batch has exactly the items of a shard, its shard file is linked or copied into the new
batch and committed. If an older batch has only some of the items, their results are scheduled for reuse. The worker of
the shard copies these results from the older batch, executes the tasks for the other items, and commits all results at
once.
"""

from __future__ import annotations

import bisect
import operator
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, islice, pairwise
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from codebatch.model.analysis.result_key import PlanItems, result_key, same_items
from codebatch.model.digest import Digest
from codebatch.model.outcome import TaskOutcome, WorkUnit
from codebatch.model.plan import Plan, PlannedTask, visible_contexts
from codebatch.model.shard import ProjectWork, Shard, ShardId
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.protocol.messages import ReusedRange
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir, BatchId
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.damage import treating_damage_as_missing
from codebatch.store.results.bases import BaseResults, ReuseBase, ShardPlace, SnapshotItems, open_base
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import EncodedOutcome, OutcomeCommitter, OutcomeRegisters, join_parts
from codebatch.store.results.shard_adoption import adopt_shard
from codebatch.store.snapshots.snapshots import Snapshot

_OUTCOMES_PER_COMMIT_MAX = 10_000
# To read another base, its plan and snapshot must be read. This is done only if at least this share of results is
# missing.
_MISS_SHARE_MIN = 1 / 256
TaskScope = Literal["file", "project"]
# The cost of copying a result from an older batch, relative to the cost of computing it.
_REUSE_COST_SHARE = 0.05


class PendingReuse(msgspec.Struct):
    """Results that workers copy from older batches instead of executing the tasks.

    `runs` maps a shard and a task to ranges of items, sorted by start. `projects` maps a project task to an older
    batch. The task may compute its result by updating the result of that batch.
    """

    runs: dict[tuple[ShardId, str], list[ReusedRange]] = msgspec.field(default_factory=dict)
    projects: dict[ShardId, BatchId] = msgspec.field(default_factory=dict)

    def for_unit(self, unit: WorkUnit) -> tuple[ReusedRange, ...]:
        """Return the ranges of reused results that overlap a unit.

        For round 2 and later, return nothing, because these rounds must execute the tasks again.
        """
        if unit.round > 1:
            return ()
        if unit.shard in self.projects:
            base = self.projects[unit.shard]
            return tuple(
                ReusedRange(task=task, start=unit.start, end=unit.end, base=base, first=unit.start)
                for task in unit.tasks
            )
        return tuple(
            run
            for task in unit.tasks
            for run in self.runs.get((unit.shard, task), ())
            if run.start < unit.end and unit.start < run.end
        )

    def reduce_costs(self, costs: Mapping[ShardId, Sequence[float]], tasks: int) -> dict[ShardId, Sequence[float]]:
        """Return the cumulative cost estimates of each shard, without the cost of results that are reused.

        `tasks` is the number of file tasks of the plan.
        """
        lessened = dict(costs)
        shares: dict[ShardId, list[float]] = {}
        for (shard, _), runs in self.runs.items():
            item_shares = shares.setdefault(shard, [1.0] * (len(costs[shard]) - 1))
            for run in runs:
                for item in range(run.start, run.end):
                    item_shares[item] -= (1 - _REUSE_COST_SHARE) / tasks
        for shard, item_shares in shares.items():
            item_costs = (after - before for before, after in pairwise(costs[shard]))
            lessened[shard] = list(accumulate(map(operator.mul, item_costs, item_shares), initial=0.0))
        return lessened


class ReuseSource(msgspec.Struct, frozen=True):
    """The older batches whose results a batch may reuse. If there are none, everything is executed.

    Results whose result key is in `untrusted` are not reused. `snapshot` is the snapshot of the batch.
    """

    store: StoreDir
    catalogue: TaskCatalogue
    bases: tuple[str, ...]
    untrusted: frozenset[Digest] = frozenset()
    snapshot: Snapshot | None = None

    def adopt_results(
        self,
        batch: BatchDir,
        plan: Plan,
        items: PlanItems,
        committer: OutcomeCommitter,
        *,
        tasks: frozenset[str] | None,
        shards: frozenset[ShardId] | None,
    ) -> PendingReuse:
        """Commit every shard whose results an older batch has completely. Return the other results that can be reused.

        `tasks` and `shards` restrict the work; None means all. On return, the commits are durable. A base that is
        missing or damaged is skipped. Raises StoreUnwritable.
        """
        if not self.bases:
            return PendingReuse()
        usable = [task for task in plan.tasks if self._is_usable(plan, task) and (tasks is None or task.name in tasks)]
        snapshot_items = (
            SnapshotItems(self.snapshot, items.entries) if self.snapshot is not None and not plan.paths else None
        )
        search = _BaseSearch(batch, plan, items, snapshot_items, shards)
        bases = self._open_bases()
        for base in bases:
            if not search.needs_another_base:
                break
            with treating_damage_as_missing():
                search.adopt_base_results(base, self._usable_from(base, usable, "file"))
        search.commit(committer)
        likeliest = sorted(bases, key=lambda base: base.snapshot_id != plan.snapshot_id) if shards is None else []
        for base in likeliest:
            for task in self._usable_from(base, usable, "project"):
                with treating_damage_as_missing():
                    search.adopt_project_result(base, task)
                search.commit(committer)
        return search.promised

    def count_reusable(self, plan: Plan, items: PlanItems) -> dict[str, int]:
        """Return how many results of each task `adopt_results` would take if the plan had no result yet.

        Nothing is written. Whether shard files are damaged is not checked.
        """
        usable = [task for task in plan.tasks if self._is_usable(plan, task)]
        current_items = None if self.snapshot is None or plan.paths else SnapshotItems(self.snapshot, items.entries)
        visible = visible_contexts(plan.tasks)
        found: dict[str, set[int]] = {task.name: set() for task in usable}
        planned = len(items.entries) * sum(task.scope == "file" for task in plan.tasks)
        bases = self._open_bases()
        for base in bases:
            if _needs_another_base(planned - sum(map(len, found.values())), planned):
                with treating_damage_as_missing():
                    file_tasks = self._usable_from(base, usable, "file")
                    for match in _match_tasks(base, file_tasks, items, visible, current_items):
                        runs = _reusable_runs(match.places, match.results, base.id, match.task)
                        found[match.task].update(item for run in runs for item in range(run.start, run.end))
        counts = {task.name: len(found.get(task.name, ())) for task in plan.tasks}
        for base in bases:
            with treating_damage_as_missing():
                is_same = (base.plan.snapshot_digest, base.plan.shards) == (plan.snapshot_digest, plan.shards)
                for task in self._usable_from(base, usable, "project"):
                    if is_same and _has_project_result(base, plan, task):
                        counts[task.name] = 1
        return counts

    def _is_usable(self, plan: Plan, task: PlannedTask) -> bool:
        """Return whether results of a task may be reused.

        This needs two conditions: the task allows reuse, and its result key is trusted. For a project task, the keys of
        all tasks that it needs must be trusted too.
        """
        needed = plan.needed_for(task.name) if task.scope == "project" else {task.name}
        keys = {result_key(planned) for planned in plan.tasks if planned.name in needed}
        return not self.catalogue.unkeyed_input(task.name) and keys.isdisjoint(self.untrusted)

    def _usable_from(self, base: ReuseBase, tasks: Sequence[PlannedTask], scope: TaskScope) -> list[PlannedTask]:
        """Return the tasks of a scope of which a base may have results: those whose programs have the same content."""
        builds = self.catalogue.program_builds(task.name for task in tasks)
        return [task for task in tasks if task.scope == scope and base.programs.get(task.name) == builds.get(task.name)]

    def _open_bases(self) -> list[ReuseBase]:
        bases: list[ReuseBase] = []
        for batch_id in self.bases:
            with treating_damage_as_missing():
                bases.append(open_base(self.store, batch_id))
        return bases


class _BaseSearch:
    """A search for missing results in the bases, the older batches.

    It collects shards to commit and ranges to reuse.
    """

    def __init__(
        self,
        batch: BatchDir,
        plan: Plan,
        items: PlanItems,
        base_items: SnapshotItems | None,
        shards: frozenset[ShardId] | None,
    ) -> None:
        self._batch = batch
        self._plan = plan
        self._items = items
        self._current_items = base_items
        self._visible_contexts = visible_contexts(plan.tasks)
        self._outcomes = OutcomeRegisters(batch.files, batch.root)
        ledger = self._ledger()
        self._adopted: list[TaskOutcome] = []
        self.promised = PendingReuse()
        self._projects: set[ShardId] = set()
        holes = {
            (shard, task): ledger.list_holes(shard, task)
            for shard, task in ledger.iter_chain_keys
            if isinstance(ledger.work[shard], Shard) and (shards is None or shard in shards)
        }
        self._open_pairs = {pair: sum(end - start for start, end in each) for pair, each in holes.items() if each}
        self._untouched_shards = {pair for pair, each in holes.items() if each == [(0, ledger.work[pair[0]].items)]}
        self._pairs = sum(self._open_pairs.values())

    def _ledger(self) -> OutcomeLedger:
        return load_ledger(self._plan, OutcomeRegisters(self._batch.files, self._batch.root))

    @property
    def needs_another_base(self) -> bool:
        """Whether enough results are missing to read another base."""
        return _needs_another_base(sum(self._open_pairs.values()), self._pairs)

    def adopt_base_results(self, base: ReuseBase, tasks: Sequence[PlannedTask]) -> None:
        """Take all missing results of file tasks that a base has. Raises StoreError if the base cannot be read."""
        for match in _match_tasks(base, tasks, self._items, self._visible_contexts, self._current_items):
            for shard in self._plan.shards:
                if (shard.id, match.task) in self._open_pairs:
                    places = match.places[shard.start : shard.end]
                    self._adopt_from_base(base, match.task, shard, places, match.results)

    def _adopt_from_base(
        self, base: ReuseBase, task: str, shard: Shard, places: Sequence[int], base_results: Sequence[BaseResults]
    ) -> None:
        key = (shard.id, task)
        first_place = next((place for place in places if place >= 0), 0)
        first = bisect.bisect_right(base_results, first_place, key=operator.attrgetter("start")) - 1
        runs = list(_reusable_runs(places, base_results[max(first, 0) :], base.id, task))
        known = self.promised.runs.get(key, [])
        if key in self._untouched_shards and len(runs) == 1 and runs[0].end - runs[0].start == shard.items:
            candidate = base_results[max(first, 0)]
            if candidate.file is not None and (candidate.start, candidate.end - candidate.start) == (
                runs[0].first,
                shard.items,
            ):
                if self._adopt_shard(shard, task, candidate.file):
                    self.promised.runs.pop(key, None)
                    del self._open_pairs[key]
                return  # Nothing is taken from a damaged shard file: another base may have an intact one.
        known_items = {item for run in known for item in range(run.start, run.end)}
        missing = [-1 if item in known_items else place for item, place in enumerate(places)]
        fresh = list(_reusable_runs(missing, base_results[max(first, 0) :], base.id, task)) if known_items else runs
        self.promised.runs[key] = sorted([*known, *fresh], key=lambda run: run.start)
        self._open_pairs[key] = max(0, self._open_pairs[key] - sum(run.end - run.start for run in fresh))

    def adopt_project_result(self, base: ReuseBase, task: PlannedTask) -> None:
        """Take the result of a project task if the base has the same snapshot, and results for all files.

        If the snapshot differs, the task gets the older result, so that it can update this result.
        """
        work = ProjectWork(task.name)
        needed = sorted(self._plan.needed_for(task.name) - {task.name})
        if work.id in self._projects or not _has_project_result(base, self._plan, task):
            return
        if base.plan.snapshot_digest != self._plan.snapshot_digest:
            # For a batch that is restricted to paths, changes of files outside these paths are unknown.
            if not self._plan.paths:
                self.promised.projects[work.id] = base.id
                self._projects.add(work.id)
            return
        ledger = self._ledger()
        if (
            base.plan.shards != self._plan.shards
            or not ledger.open_units(work.id)
            or any(
                link.type != "result" or link.outcome.inputs_outside_key
                for shard in self._plan.shards
                for name in needed
                for link in ledger.iter_links(shard.id, name)
            )
        ):
            return
        parts: list[EncodedOutcome] = []
        for shard, held in zip(self._plan.shards, base.task_results(task.name), strict=True):
            part = adopt_shard(self._batch.files, self._outcomes, shard, task.name, held.file) if held.file else None
            if part is None:
                return
            parts.append(part)
        outcome = TaskOutcome(
            shard=work.id, task=task.name, start=0, end=1, type="result", inputs=ledger.inputs_digest(task.name)
        )
        self._adopted.append(join_parts(outcome, parts).outcome)
        self._projects.add(work.id)

    def _adopt_shard(self, shard: Shard, task: str, place: ShardPlace) -> bool:
        adopted = adopt_shard(self._batch.files, self._outcomes, shard, task, place)
        if adopted is not None:
            self._adopted.append(replace(adopted.outcome, reused=shard.items))
        return adopted is not None

    def commit(self, committer: OutcomeCommitter) -> None:
        """Publish the adopted shards in the batch. On return, the commits are durable."""
        if not self._adopted:
            return
        self._batch.files.sync_directory(self._batch.root / layout.RESULTS)
        more = iter(self._adopted)
        while some := list(islice(more, _OUTCOMES_PER_COMMIT_MAX)):
            committer.adopt_outcomes(some)
        self._adopted.clear()


def _needs_another_base(missing: int, planned: int) -> bool:
    return missing > 0 and missing >= planned * _MISS_SHARE_MIN


class _TaskMatch(NamedTuple):
    """The reusable results of a file task in a base.

    `places` maps each item of the plan to its index in the base, or to -1 if the base does not have the same item.
    """

    task: str
    places: list[int]
    results: list[BaseResults]


def _match_tasks(
    base: ReuseBase,
    tasks: Sequence[PlannedTask],
    items: PlanItems,
    visible: Mapping[str, frozenset[str]],
    current_items: SnapshotItems | None,
) -> Iterator[_TaskMatch]:
    """Yield the reusable results of each file task that the base has too. Raises StoreError."""
    keys = {task.name: result_key(task) for task in base.plan.tasks}
    same: dict[frozenset[str], list[int]] = {}
    base_items = base.items(current_items)
    for task in tasks:
        if keys.get(task.name) != result_key(task):
            continue
        contexts = visible[task.name]
        if contexts not in same:
            same[contexts] = same_items(items, base_items, contexts)
        places = same[contexts]
        if missing_objects := base.items_with_missing_objects(task.name):
            places = [-1 if place in missing_objects else place for place in places]
        results = [base_result for base_result in base.task_results(task.name) if not base_result.uncovered_inputs]
        yield _TaskMatch(task.name, places, results)


def _has_project_result(base: ReuseBase, plan: Plan, task: PlannedTask) -> bool:
    """Return whether a base has a complete result of a project task, of a plan with equal paths. Raises StoreError.

    The snapshot of the base may differ.
    """
    needed = sorted(plan.needed_for(task.name))
    known = {planned_task.name: planned_task.key for planned_task in base.plan.tasks}
    return (
        bool(plan.shards)
        and known.get(task.name) == task.key
        and base.plan.paths == plan.paths
        and all(base.has_all_results(name) for name in needed)
        and not any(held.uncovered_inputs for name in needed for held in base.task_results(name))
    )


def _reusable_runs(
    places: Sequence[int], base_results: Sequence[BaseResults], base: str, task: str
) -> Iterator[ReusedRange]:
    """Yield ranges of items that a base has consecutively and with results. Each range is as long as possible.

    `places` has for each item of a shard its index in the base, or -1 if the base does not have the item.
    """
    ranges = iter(base_results)
    at = next(ranges, None)
    start = 0
    while start < len(places):
        first = places[start]
        while at is not None and first >= at.end:
            at = next(ranges, None)
        if first < 0 or at is None or first < at.start:
            start += 1
            continue
        end = start + 1
        while end < len(places) and places[end] == first + end - start and places[end] < at.end:
            end += 1
        yield ReusedRange(task=task, start=start, end=end, base=base, first=first)
        start = end
