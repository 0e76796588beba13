"""From the registers on disk to the engine's ledger, and to counts."""

from __future__ import annotations

from collections.abc import Collection

from codebatch.engine.ledger import Ledger
from codebatch.engine.lifecycle import Tally
from codebatch.model.outcome import Register
from codebatch.model.plan import Plan
from codebatch.store.outcomes import Outcomes


def load_ledger(plan: Plan, outcomes: Outcomes) -> Ledger:
    """Everything the registers of a batch say now."""
    ledger = Ledger(plan.work().values(), {task.name: task.needs for task in plan.tasks})
    found = outcomes.scan()
    for commit in found.commits:
        try:
            ledger.add(commit)
        except ValueError:  # Damaged, and still JSON.
            found.unreadable.extend(Register(one.shard, one.start, one.task, commit.round) for one in commit.outcomes)
    for register in found.unreadable:
        ledger.mark_unreadable(register)
    return ledger


def tally_of(ledger: Ledger, tasks: Collection[str] | None = None) -> Tally:
    """How many (item, task) pairs of some tasks, or of all, ended how.

    A project task is one; what it says of inputs that changed is open.
    """
    totals = {"result": 0, "failed": 0, "cancelled": 0}
    stale = {work.id for work in ledger.project_work if ledger.open_units(work.id)}
    for shard, task in ledger.chains:
        if shard not in stale and (tasks is None or task in tasks):
            for link in ledger.walk(shard, task):
                totals[link.type] += link.end - link.start
    return Tally(
        planned=ledger.planned(tasks),
        results=totals["result"],
        failed=totals["failed"],
        cancelled=totals["cancelled"],
    )
