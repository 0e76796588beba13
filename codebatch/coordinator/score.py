"""How far a run is: items and records, each outcome counted once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from codebatch.engine.ledger import Ledger
from codebatch.model.outcome import Commit, Register
from codebatch.model.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is: items by task, of which a project task has one.

    `inflight` are the items that workers have done and not committed.
    """

    planned: Mapping[str, int]
    done: Mapping[str, int]
    inflight: int
    records: int
    failures: int
    workers: int


class Score:
    """Counts what is in a ledger, and then what is new to it."""

    def __init__(self, plan: Plan, ledger: Ledger, *, is_retried: bool) -> None:
        """`is_retried`: what failed is to be done again, so it does not count."""
        self._ledger = ledger
        self._planned = {task.name: 1 if task.scope == "project" else plan.items for task in plan.tasks}
        self._done = dict.fromkeys(plan.task_names, 0)
        self._records = self._failures = 0
        for shard, task in ledger.chains:
            for link in ledger.walk(shard, task):
                if link.type == "result" or not is_retried:
                    self._count(link.outcome.task, link.end - link.start, link.type, link.outcome.counts.records)

    def add(self, commits: Iterable[Commit]) -> None:
        """Count what is new, before the ledger has it: what its worker reports may have been found on disk, and the
        other way."""
        for commit in commits:
            for outcome in commit.outcomes:
                if not self._ledger.knows(Register(outcome.shard, outcome.start, outcome.task, commit.round)):
                    self._count(outcome.task, outcome.end - outcome.start, outcome.type, outcome.counts.records)

    def progress(self, *, inflight: int, workers: int) -> Progress:
        """The counts as they are now."""
        return Progress(
            planned=self._planned,
            done=self._done,
            inflight=inflight,
            records=self._records,
            failures=self._failures,
            workers=workers,
        )

    def _count(self, task: str, items: int, type_: str, records: int) -> None:
        self._done[task] += items
        self._records += records
        self._failures += items if type_ == "failed" else 0
