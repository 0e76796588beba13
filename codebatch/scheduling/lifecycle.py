"""Where a batch stands, from what is settled of it (SPEC.md "Batch states")."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

from codebatch.scheduling.outcome_counts import OutcomeCounts


class BatchState(str, Enum):
    """PENDING: nothing ran. RUNNING: work is open. The others: every planned item has an outcome."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def is_final(self) -> bool:
        """Whether nothing is open, so that only `resume` can change it."""
        return self not in (BatchState.PENDING, BatchState.RUNNING)


def batch_state(tally: OutcomeCounts, *, is_started: bool) -> BatchState:
    """The state of a batch. `is_started`: it ever had a holder."""
    if tally.open:
        return BatchState.RUNNING if is_started or tally.open < tally.planned else BatchState.PENDING
    if tally.results == tally.planned:
        return BatchState.COMPLETED
    if tally.cancelled:
        return BatchState.CANCELLED
    return BatchState.PARTIAL if tally.results else BatchState.FAILED


def is_stalled(state: BatchState, *, live_holders: int) -> bool:
    """Whether work is open that nobody holds: the next `run` or `resume` continues it."""
    return state is BatchState.RUNNING and live_holders == 0


class CommandState(str, Enum):
    """Where a command stands (SPEC.md "Commands").

    PENDING: something that it needs is open or blocked. READY: it may start. WAITING: it is tried again after a while.
    BLOCKED: it waits for an answer. SKIPPED: something that it needs failed, was cancelled or skipped; or it was.
    """

    PENDING = "PENDING"
    READY = "READY"
    WAITING = "WAITING"
    RUNNING = "RUNNING"
    BLOCKED = "BLOCKED"
    DONE = "DONE"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    CANCELLED = "CANCELLED"


def work_state(states: Collection[CommandState], *, is_begun: bool, is_at_work: bool, is_cancelled: bool) -> BatchState:
    """Where a batch of commands in these states stands. `is_at_work`: something runs, or is to be judged."""
    kinds = {*states}
    if kinds <= {CommandState.DONE}:
        return BatchState.COMPLETED
    if is_at_work or kinds & {CommandState.RUNNING, CommandState.READY, CommandState.WAITING}:
        return BatchState.RUNNING if is_begun else BatchState.PENDING
    if is_cancelled:
        return BatchState.CANCELLED
    return BatchState.PARTIAL if kinds & {CommandState.DONE, CommandState.BLOCKED} else BatchState.FAILED
