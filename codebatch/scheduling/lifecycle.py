"""States of batches and commands (SPEC.md "Batch states")."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

from codebatch.scheduling.outcome_counts import OutcomeCounts


class BatchState(str, Enum):
    """The state of a batch. PENDING: nothing ran. RUNNING: work is open. In all other states, no work is open."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def is_final(self) -> bool:
        """True if no work is open. Then only `resume` can change the state."""
        return self not in (BatchState.PENDING, BatchState.RUNNING)


def batch_state(tally: OutcomeCounts, *, is_started: bool) -> BatchState:
    """Return the state of an analysis. `is_started` is set if the batch ever had a holder."""
    if tally.open_count:
        return BatchState.RUNNING if is_started or tally.open_count < tally.planned else BatchState.PENDING
    if tally.results == tally.planned:
        return BatchState.COMPLETED
    if tally.cancelled:
        return BatchState.CANCELLED
    return BatchState.PARTIAL if tally.results else BatchState.FAILED


def is_stalled(state: BatchState, *, live_holders: int) -> bool:
    """Return whether a batch has open work but no live process. Then the next `run` or `resume` continues the batch."""
    return state is BatchState.RUNNING and live_holders == 0


class CommandState(str, Enum):
    """The state of a command (SPEC.md "Commands").

    - PENDING: a needed command is open or blocked.
    - READY: it can start now.
    - WAITING: it will be retried after a waiting time, which has not passed yet.
    - BLOCKED: it waits for an answer.
    - SKIPPED: a needed command did not succeed, or a request skipped it.
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

    @property
    def is_ended(self) -> bool:
        """Whether the command neither runs nor will run without a request."""
        return self in (CommandState.DONE, CommandState.FAILED, CommandState.SKIPPED, CommandState.CANCELLED)


def work_state(states: Collection[CommandState], *, is_begun: bool, is_at_work: bool, is_cancelled: bool) -> BatchState:
    """Return the state of a work batch, computed from the states of its commands and three facts.

    - `is_begun`: a command was ever started.
    - `is_at_work`: a command runs, or the coordinator must decide what follows an interruption.
    - `is_cancelled`: a request cancelled the batch.
    """
    kinds = {*states}
    if kinds <= {CommandState.DONE}:
        return BatchState.COMPLETED
    if is_at_work or kinds & {CommandState.RUNNING, CommandState.READY, CommandState.WAITING}:
        return BatchState.RUNNING if is_begun else BatchState.PENDING
    if is_cancelled:
        return BatchState.CANCELLED
    return BatchState.PARTIAL if kinds & {CommandState.DONE, CommandState.BLOCKED} else BatchState.FAILED
