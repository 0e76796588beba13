"""Progress of a run: counts of items and records. Each outcome is counted once, even if several were published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from codebatch.model.outcome import Commit, OutcomeRegister, WorkUnit
from codebatch.model.plan import Plan
from codebatch.model.shard import ProjectWork, ShardId
from codebatch.scheduling.analysis.chains import ChainLink
from codebatch.scheduling.analysis.ledger import OutcomeLedger

RunPhase = Literal[
    "listing", "reading", "planning", "joining", "running", "merging", "counting", "reading history",
    "comparing versions", "indexing", "collecting",
]  # fmt: skip
"""Phases of a run, in order: listing the tree, reading changed files, planning, execution, merging, counting records.

Some commands have other phases: reading the git history, comparing versions, indexing, and garbage collection.
"""


class RunScope(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a batch to execute, and options of the execution.

    With `retry_failed`, failed work is executed again. `shuffle_seed` selects a random order of units. With
    `take_over`, the run also executes units that processes on other hosts have leased.
    """

    tasks: frozenset[str] | None = None
    shards: frozenset[ShardId] | None = None
    retry_failed: bool = False
    shuffle_seed: int | None = None
    take_over: bool = False


class RunProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a run.

    - `planned`, `done`: the number of items by task. A project task has one item.
    - `results_planned`: the number of results in the scope of the run, one for each item and task.
    - `results_done`: how many of these are committed, or finished by a worker.
    - `work_done`: the finished share of the estimated cost.
    - `reused`: the number of results from older batches.
    """

    planned: Mapping[str, int]
    done: Mapping[str, int]
    results_planned: int
    results_done: int
    work_done: float
    reused: int
    records: int
    failures: int
    workers: int


class RunningUnit(NamedTuple):
    """A unit that a worker executes, and the number of its items that the worker has finished."""

    unit: WorkUnit
    items_done: int


class ProgressCounter:
    """Counter of the committed work in a ledger.

    An outcome counts only if all items before it, in its shard and task, have an outcome too.
    """

    def __init__(
        self, plan: Plan, ledger: OutcomeLedger, costs: Mapping[ShardId, Sequence[float]], scope: RunScope
    ) -> None:
        """Start with all counts at 0.

        `costs` are cumulative estimates by item. If the scope retries failures, they do not count as done.
        """
        self._ledger = ledger
        self._costs = costs
        self._planned = {task.name: 1 if task.scope == "project" else plan.item_count for task in plan.tasks}
        self._done = dict.fromkeys(plan.task_names, 0)
        self._records = self._failures = self._reused_counts = 0
        self._file_tasks = max(1, len(plan.tasks) - len(plan.project_tasks))
        self._projects = {ProjectWork(task).id for task in plan.project_tasks}
        self._scope = {
            (shard, task)
            for shard, task in ledger.iter_chain_keys
            if (scope.tasks is None or task in scope.tasks) and (scope.shards is None or shard in scope.shards)
        }
        self._results_planned = sum(len(costs[shard]) - 1 for shard, _ in self._scope)
        self._cost_planned = sum(self._items_cost(shard, 0, len(costs[shard]) - 1) for shard, _ in self._scope)
        self._results_done = 0
        self._cost_done = 0.0
        self._counted_links: dict[tuple[ShardId, str], list[ChainLink]] = {}
        self._changed_chains = dict.fromkeys(ledger.iter_chain_keys)
        self._retried: set[OutcomeRegister] = set()
        if scope.retry_failed:
            self._retried.update(
                OutcomeRegister(shard, link.start, task, link.round)
                for shard, task in ledger.iter_chain_keys
                for link in ledger.unsuccessful_links(shard, task)
            )

    def note_commits(self, commits: Iterable[Commit]) -> None:
        """Record which chains of outcomes have new commits.

        Only these are counted again by the next call of `progress`.
        """
        for commit in commits:
            for outcome in commit.outcomes:
                self._changed_chains[outcome.shard, outcome.task] = None

    def progress(self, running: Iterable[RunningUnit], *, workers: int) -> RunProgress:
        """Return the progress. `running` are the units that workers execute now; their finished items count too."""
        for shard, task in self._changed_chains:
            links = [
                link
                for link in self._ledger.iter_links(shard, task)
                if OutcomeRegister(shard, link.start, task, link.round) not in self._retried
            ]
            self._count_links(shard, task, self._counted_links.get((shard, task), ()), -1)
            self._count_links(shard, task, links, 1)
            self._counted_links[shard, task] = links
        self._changed_chains.clear()
        results, cost = self._results_done, self._cost_done
        for unit, items in running:
            leased_count = sum(
                not self._ledger.has_outcome(OutcomeRegister(unit.shard, unit.start, task, unit.round))
                for task in unit.tasks
            )
            results += leased_count * items
            cost += leased_count * self._items_cost(unit.shard, unit.start, unit.start + items)
        return RunProgress(
            planned=self._planned,
            done=dict(self._done),
            results_planned=self._results_planned,
            results_done=min(results, self._results_planned),
            work_done=min(1.0, cost / self._cost_planned) if self._cost_planned else 0.0,
            reused=self._reused_counts,
            records=self._records,
            failures=self._failures,
            workers=workers,
        )

    def _count_links(self, shard: ShardId, task: str, links: Iterable[ChainLink], sign: int) -> None:
        for link in links:
            items = sign * (link.end - link.start)
            self._done[task] += items
            self._reused_counts += sign * link.outcome.reused
            self._records += sign * link.outcome.counts.records
            self._failures += items if link.type == "failed" else 0
            if (shard, task) in self._scope:
                self._results_done += items
                self._cost_done += sign * self._items_cost(shard, link.start, link.end)

    def _items_cost(self, shard: ShardId, start: int, end: int) -> float:
        """Return the estimated cost of one task for the items [start, end) of a shard or project."""
        tasks = 1 if shard in self._projects else self._file_tasks
        return (self._costs[shard][end] - self._costs[shard][start]) / tasks
