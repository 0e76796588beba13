"""How far a run is: items and records, each outcome counted once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from codebatch.engine.chains import Link
from codebatch.engine.ledger import Ledger
from codebatch.model.outcome import Commit, Register
from codebatch.model.plan import Plan
from codebatch.model.shard import ShardId

Phase = Literal["listing", "reading", "planning", "running", "merging", "counting", "indexing", "collecting"]
"""What a run is at: paths of the tree, their content, the plan, the work, its outputs, their records, their index, and
what nobody needs any more."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a run is: items by task, of which a project task has one.

    `inflight` are the items that workers have done and not committed; `served` of the done ones were taken over from
    older batches.
    """

    planned: Mapping[str, int]
    done: Mapping[str, int]
    inflight: int
    served: int
    records: int
    failures: int
    workers: int


class Score:
    """Counts what stands in a ledger: the links of its chains, and no register that they do not reach."""

    def __init__(self, plan: Plan, ledger: Ledger, *, is_retried: bool) -> None:
        """`is_retried`: what failed is to be done again, so it does not count."""
        self._ledger = ledger
        self._planned = {task.name: 1 if task.scope == "project" else plan.items for task in plan.tasks}
        self._done = dict.fromkeys(plan.task_names, 0)
        self._records = self._failures = self._served = 0
        self._counted: dict[tuple[ShardId, str], list[Link]] = {}
        self._changed = dict.fromkeys(ledger.chains)
        self._retried: set[Register] = set()
        if is_retried:
            self._retried.update(
                Register(shard, link.start, task, link.round)
                for shard, task in ledger.chains
                for link in ledger.unsuccessful(shard, task)
            )

    def note(self, commits: Iterable[Commit]) -> None:
        """Commits are told to the ledger now: their chains are counted anew when somebody asks next."""
        for commit in commits:
            for outcome in commit.outcomes:
                self._changed[outcome.shard, outcome.task] = None

    def progress(self, *, inflight: int, workers: int) -> Progress:
        """The counts as they are now."""
        for shard, task in self._changed:
            links = [
                link
                for link in self._ledger.walk(shard, task)
                if Register(shard, link.start, task, link.round) not in self._retried
            ]
            self._count(task, self._counted.get((shard, task), ()), -1)
            self._count(task, links, 1)
            self._counted[shard, task] = links
        self._changed.clear()
        return Progress(
            planned=self._planned,
            done=dict(self._done),
            inflight=inflight,
            served=self._served,
            records=self._records,
            failures=self._failures,
            workers=workers,
        )

    def _count(self, task: str, links: Iterable[Link], sign: int) -> None:
        for link in links:
            items = sign * (link.end - link.start)
            self._done[task] += items
            self._served += sign * link.outcome.served
            self._records += sign * link.outcome.counts.records
            self._failures += items if link.type == "failed" else 0
