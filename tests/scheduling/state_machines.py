"""State machines of work items, workers and batches: their states and transitions.

These states are not stored. A session derives them from the ledger and from events. The state of a batch follows from
its outcomes and the processes that run it (SPEC.md "Batch states"). Tests check random sessions against the tables:
each transition occurs, and no other.
"""

from __future__ import annotations

from enum import Enum
from typing import Generic, TypeVar

import msgspec

from codebatch.scheduling.actions import AssignUnit, CommitFailure, RetireWorker, SessionAction, ShrinkUnit
from codebatch.scheduling.events import (
    LeaseRefused,
    OutcomesCommitted,
    SessionEvent,
    UnitDone,
    UnitReleased,
    WorkerIdle,
    WorkerLost,
)
from codebatch.scheduling.lifecycle import BatchState


class WorkState(str, Enum):
    """State of an item of a unit for one of its tasks, as one session sees it."""

    WAITING = "WAITING"
    OPEN = "OPEN"
    RUNNING = "RUNNING"
    FOREIGN = "FOREIGN"
    FAILING = "FAILING"
    SETTLED = "SETTLED"


class WorkerState(str, Enum):
    """State of a worker, as its session sees it. A FRESH worker is idle and never had a unit."""

    SPAWNING = "SPAWNING"
    FRESH = "FRESH"
    RUNNING = "RUNNING"
    IDLE = "IDLE"
    RETIRED = "RETIRED"
    DEAD = "DEAD"


State = TypeVar("State", WorkState, WorkerState, BatchState)


class Transition(msgspec.Struct, Generic[State], frozen=True):
    """A transition between states: the event or the requested action that causes it, and the condition."""

    before: State
    by: type[SessionEvent] | type[SessionAction]
    after: State
    when: str


_W, _P, _B = WorkState, WorkerState, BatchState

WORK_LIFE: tuple[Transition[WorkState], ...] = (
    Transition(_W.WAITING, OutcomesCommitted, _W.OPEN, "item of a project task: all tasks that it needs are settled"),
    Transition(
        _W.WAITING,
        OutcomesCommitted,
        _W.SETTLED,
        "item of a project task: all tasks that it needs are settled, and another process committed its outcome",
    ),
    Transition(
        _W.WAITING,
        OutcomesCommitted,
        _W.FOREIGN,
        "item of a project task: all tasks that it needs are settled, and another process has leased it",
    ),
    Transition(_W.OPEN, AssignUnit, _W.RUNNING, "the session assigns the unit to a worker"),
    Transition(
        _W.OPEN,
        CommitFailure,
        _W.FAILING,
        "a task that it needs failed for the item, or the item killed too many workers",
    ),
    Transition(_W.OPEN, OutcomesCommitted, _W.SETTLED, "another process committed its outcome"),
    Transition(
        _W.OPEN,
        LeaseRefused,
        _W.FOREIGN,
        "another process has leased an earlier unit of the shard, which may include the item",
    ),
    Transition(
        _W.OPEN,
        WorkerLost,
        _W.FOREIGN,
        "the worker between them died: the earlier unit of another process may include the item",
    ),
    Transition(_W.RUNNING, OutcomesCommitted, _W.SETTLED, "its worker or another process committed its outcome"),
    Transition(
        _W.RUNNING,
        ShrinkUnit,
        _W.OPEN,
        "its unit was shortened, and the item returns to the queue or to an idle worker",
    ),
    Transition(_W.RUNNING, UnitDone, _W.OPEN, "its worker finished the unit without processing the item"),
    Transition(_W.RUNNING, CommitFailure, _W.FAILING, "a task that it needs failed for the item meanwhile"),
    Transition(_W.RUNNING, WorkerLost, _W.OPEN, "its worker died"),
    Transition(
        _W.RUNNING,
        WorkerLost,
        _W.FOREIGN,
        "its worker died, and a unit that another process has leased may include the item",
    ),
    Transition(_W.RUNNING, LeaseRefused, _W.FOREIGN, "another process has the lease of its unit"),
    Transition(
        _W.RUNNING,
        LeaseRefused,
        _W.OPEN,
        "another process has the lease of its unit, but that unit ends before the item",
    ),
    Transition(_W.FOREIGN, OutcomesCommitted, _W.OPEN, "the start of the leased unit is settled, and the item is not"),
    Transition(_W.FOREIGN, OutcomesCommitted, _W.SETTLED, "the process that leased it committed its outcome"),
    Transition(_W.FOREIGN, UnitReleased, _W.OPEN, "the process that leased it died or hangs"),
    Transition(_W.FAILING, OutcomesCommitted, _W.SETTLED, "its failure is durable"),
    Transition(_W.FAILING, OutcomesCommitted, _W.OPEN, "the file of its failure exists, but its content is invalid"),
    Transition(
        _W.SETTLED, OutcomesCommitted, _W.OPEN, "an input of a project task was replaced, or its outcome is damaged now"
    ),
    Transition(
        _W.SETTLED, OutcomesCommitted, _W.RUNNING, "its outcome is damaged now, and its worker is still processing it"
    ),
)

WORKER_LIFE: tuple[Transition[WorkerState], ...] = (
    Transition(_P.SPAWNING, WorkerIdle, _P.FRESH, "the worker is ready for a unit"),
    Transition(_P.SPAWNING, WorkerLost, _P.DEAD, "the worker died during its start"),
    Transition(
        _P.FRESH,
        AssignUnit,
        _P.RUNNING,
        "the worker gets any unit, also a unit of a single item that killed a worker before",
    ),
    Transition(_P.FRESH, RetireWorker, _P.RETIRED, "the session ends"),
    Transition(_P.FRESH, WorkerLost, _P.DEAD, "the worker died while idle"),
    Transition(_P.RUNNING, ShrinkUnit, _P.RUNNING, "the unit of the worker was shortened"),
    Transition(_P.RUNNING, UnitDone, _P.IDLE, "the unit is done, or its time is up"),
    Transition(_P.RUNNING, LeaseRefused, _P.IDLE, "another process has the lease of the unit"),
    Transition(_P.RUNNING, WorkerLost, _P.DEAD, "the worker died; its uncommitted items are open again"),
    Transition(
        _P.IDLE,
        AssignUnit,
        _P.RUNNING,
        "the worker gets any unit, except a unit of a single item that killed a worker before",
    ),
    Transition(
        _P.IDLE, RetireWorker, _P.RETIRED, "the worker is worn out, is replaced by a fresh worker, or the session ends"
    ),
    Transition(_P.IDLE, WorkerLost, _P.DEAD, "the worker died while idle"),
    Transition(_P.RETIRED, WorkerLost, _P.DEAD, "the worker exited as expected, which does not count as a death"),
)

BATCH_LIFE: tuple[Transition[BatchState], ...] = (
    Transition(_B.PENDING, AssignUnit, _B.RUNNING, "a process took a lease"),
    Transition(
        _B.RUNNING,
        OutcomesCommitted,
        _B.COMPLETED,
        "the last open pair of item and task is settled, and all pairs have a result",
    ),
    Transition(
        _B.RUNNING,
        OutcomesCommitted,
        _B.PARTIAL,
        "the last open pair of item and task is settled, and some pairs failed",
    ),
    Transition(
        _B.RUNNING, OutcomesCommitted, _B.FAILED, "the last open pair of item and task is settled, and all pairs failed"
    ),
    Transition(_B.FAILED, OutcomesCommitted, _B.RUNNING, "a later round replaced an input of a project task"),
    Transition(
        _B.FAILED, OutcomesCommitted, _B.PARTIAL, "a later round replaced a failure, and other failures are left"
    ),
    Transition(_B.FAILED, OutcomesCommitted, _B.COMPLETED, "a later round replaced the last failure"),
    Transition(_B.PARTIAL, OutcomesCommitted, _B.COMPLETED, "a later round replaced the last failure"),
    Transition(_B.PARTIAL, OutcomesCommitted, _B.RUNNING, "a later round replaced an input of a project task"),
)
