"""The death of a worker: the items that it was executing, and the journal entry."""

from __future__ import annotations

from collections.abc import Sequence

from codebatch.coordinator.processes.worker_backend import INVALID_MESSAGES, WorkerExited, WorkerHandle
from codebatch.model.entry import Entry, display_path
from codebatch.model.outcome import WorkUnit
from codebatch.model.plan import Plan
from codebatch.model.shard import Work, work_item_path
from codebatch.store.batches import journal
from codebatch.system.processes.progress_cell import NO_TASK, PHASE_COMMIT, PHASE_NAMES

ERROR_LINE_CHARACTERS_MAX = 200


def last_error_line(died: WorkerExited) -> str:
    """Return the last line of a worker's standard error. If it wrote none, return how it ended."""
    return died.stderr.strip().rpartition("\n")[2][:ERROR_LINE_CHARACTERS_MAX] or died.how


def items_at_death(died: WorkerExited, unit: WorkUnit | None) -> tuple[int, int] | None:
    """Return the range of items that may have caused the death of a worker, or None if no item can have caused it."""
    if unit is None:
        return None
    # A task wrote other data to the channel. Its item may already be finished, so any item of the unit may be the
    # cause.
    if died.killed_for == INVALID_MESSAGES:
        return unit.start, unit.end
    if died.step is None or died.step.phase == PHASE_COMMIT or died.killed_for == "interrupted":
        return None
    return died.step.items


def task_at_death(died: WorkerExited, plan: Plan) -> str | None:
    """Return the task that a worker executed when it died, according to its progress cell, a small shared file."""
    if died.step is None or died.step.task == NO_TASK:
        return None
    return plan.task_names[died.step.task]


def death_entry(
    died: WorkerExited,
    member: WorkerHandle,
    unit: WorkUnit | None,
    items: tuple[int, int] | None,
    task: str | None,
    work: Work | None,
    entries: Sequence[Entry],
) -> journal.Lost:
    """Return the journal entry for the death of a worker.

    `unit` is the unit that it executed, and `work` the shard or project task of this unit. `entries` are the items of
    the plan.
    """
    path = None
    if work is not None and items is not None and items[1] == items[0] + 1:
        path = display_path(work_item_path(work, items[0], entries))
    phase = f"phase: {PHASE_NAMES[died.step.phase]}" if died.step else ""
    return journal.Lost(
        worker=member.holder,
        pid=member.pid,
        shard=unit.shard if unit else None,
        start=items[0] if items else None,
        end=items[1] if items else None,
        path=path,
        reason=f"{died.killed_for}: {died.how}" if died.killed_for else died.how,
        memory_peak_bytes=died.memory_peak_bytes,
        task=task,
        evidence="\n".join(filter(None, [phase, died.stderr])),
    )
