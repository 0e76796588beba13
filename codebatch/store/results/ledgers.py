"""From the registers on disk to the engine's ledger, and to counts."""

from __future__ import annotations

from collections.abc import Collection

from codebatch.model.outcome import Register
from codebatch.model.plan import Plan
from codebatch.scheduling.analysis.ledger import Ledger
from codebatch.scheduling.outcome_counts import OutcomeCounts
from codebatch.store.results.outcomes import Outcomes, Scan


def load_ledger(plan: Plan, outcomes: Outcomes) -> Ledger:
    """Everything the registers of a batch say now."""
    ledger = Ledger(plan.work().values(), {task.name: task.needs for task in plan.tasks})
    found = scan(ledger, outcomes)
    for commit in found.commits:
        ledger.add(commit)
    for register in found.unreadable:
        ledger.mark_unreadable(register)
    return ledger


def scan(ledger: Ledger, outcomes: Outcomes) -> Scan:
    """What appeared since the last scan. A commit that the plan does not know is damaged, and so is unreadable."""
    found = outcomes.scan()
    unreadable = [
        Register(outcome.shard, outcome.start, outcome.task, commit.round)
        for commit in found.commits
        if not ledger.fits(commit)
        for outcome in commit.outcomes
    ]
    return Scan([commit for commit in found.commits if ledger.fits(commit)], found.unreadable + unreadable)


def tally_of(ledger: Ledger, tasks: Collection[str] | None = None) -> OutcomeCounts:
    """How many (item, task) pairs of some tasks, or of all, ended how.

    A project task is one; what it says of inputs that changed is open.
    """
    totals = {"result": 0, "failed": 0, "cancelled": 0}
    stale = {work.id for work in ledger.project_work if ledger.open_units(work.id)}
    for shard, task in ledger.chains:
        if shard not in stale and (tasks is None or task in tasks):
            for link in ledger.walk(shard, task):
                totals[link.type] += link.end - link.start
    return OutcomeCounts(
        planned=ledger.planned(tasks),
        results=totals["result"],
        failed=totals["failed"],
        cancelled=totals["cancelled"],
    )


def count_files_done(ledger: Ledger, plan: Plan, tasks: Collection[str]) -> int:
    """At how many files some tasks, and all that they need, have come to an end. Of project tasks that says nothing."""
    needed = frozenset().union(*map(plan.needed_for, tasks)) - set(plan.project_tasks)
    done = 0
    for shard in plan.shards:
        reached = 0
        done += shard.items
        for start, end in sorted(hole for task in needed for hole in ledger.holes(shard.id, task)):
            done -= max(end - max(start, reached), 0)
            reached = max(reached, end)
    return done
