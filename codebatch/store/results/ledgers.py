"""Ledgers and counts of outcomes, made from the registers on disk.

A ledger knows which work of a batch has outcomes.
"""

from __future__ import annotations

from collections.abc import Collection

from codebatch.model.outcome import OutcomeRegister
from codebatch.model.plan import Plan
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.scheduling.outcome_counts import OutcomeCounts
from codebatch.store.results.outcomes import OutcomeRegisters, OutcomeScan


def load_ledger(plan: Plan, outcomes: OutcomeRegisters) -> OutcomeLedger:
    """Read all registers of a batch. Return a ledger of them."""
    ledger = OutcomeLedger(plan.work_by_id().values(), {task.name: task.needs for task in plan.tasks})
    changes = scan_new_outcomes(ledger, outcomes)
    for commit in changes.commits:
        ledger.add(commit)
    for register in changes.unreadable:
        ledger.mark_unreadable(register)
    return ledger


def scan_new_outcomes(ledger: OutcomeLedger, outcomes: OutcomeRegisters) -> OutcomeScan:
    """Add the registers that appeared since the last scan to `ledger`. Return them with their commits.

    A commit that does not fit the plan is damaged. Its registers are returned as unreadable.
    """
    changes = outcomes.scan_new()
    unreadable = [
        OutcomeRegister(outcome.shard, outcome.start, outcome.task, commit.round)
        for commit in changes.commits
        if not ledger.fits_plan(commit)
        for outcome in commit.outcomes
    ]
    return OutcomeScan(
        [commit for commit in changes.commits if ledger.fits_plan(commit)], changes.unreadable + unreadable
    )


def count_ledger_outcomes(ledger: OutcomeLedger, tasks: Collection[str] | None = None) -> OutcomeCounts:
    """Count the (item, task) pairs of given tasks, or of all tasks, by the type of their outcome.

    A project task counts as one pair. If the inputs of a project task have changed since its outcome, the outcome is
    not counted.
    """
    totals = {"result": 0, "failed": 0, "cancelled": 0}
    stale = {work.id for work in ledger.project_work if ledger.open_units(work.id)}
    for shard, task in ledger.iter_chain_keys:
        if shard not in stale and (tasks is None or task in tasks):
            for link in ledger.iter_links(shard, task):
                totals[link.type] += link.end - link.start
    return OutcomeCounts(
        planned=ledger.planned_count(tasks),
        results=totals["result"],
        failed=totals["failed"],
        cancelled=totals["cancelled"],
    )


def count_files_done(ledger: OutcomeLedger, plan: Plan, tasks: Collection[str]) -> int:
    """Return the number of files for which `tasks`, and all file tasks that these need, have outcomes."""
    needed = frozenset().union(*map(plan.needed_for, tasks)) - set(plan.project_tasks)
    done = 0
    for shard in plan.shards:
        reached = 0
        done += shard.items
        for start, end in sorted(gap for task in needed for gap in ledger.list_holes(shard.id, task)):
            done -= max(end - max(start, reached), 0)
            reached = max(reached, end)
    return done
