"""State machines of work items, workers and batches: their states and transitions.

These states are not stored. A session derives them from the ledger and from events. The state of a batch follows from
its outcomes and the processes that run it (SPEC.md "Batch states"). Tests check random sessions against the tables:
each transition occurs, and no other.
"""

from __future__ import annotations

from enum import Enum
from typing import Generic, TypeVar

import msgspec

from codebatch.scheduling.actions import Action, Assign, Fail, Retire, Shrink
from codebatch.scheduling.events import Committed, Event, Finished, Lost, Ready, Refused, Released
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


class Move(msgspec.Struct, Generic[State], frozen=True):
    """A transition between states: the event or the requested action that causes it, and the condition."""

    before: State
    by: type[Event] | type[Action]
    after: State
    when: str


_W, _P, _B = WorkState, WorkerState, BatchState

WORK_LIFE: tuple[Move[WorkState], ...] = (
    Move(_W.WAITING, Committed, _W.OPEN, "item of a project task: all tasks that it needs are settled"),
    Move(
        _W.WAITING,
        Committed,
        _W.SETTLED,
        "item of a project task: all tasks that it needs are settled, and another process committed its outcome",
    ),
    Move(
        _W.WAITING,
        Committed,
        _W.FOREIGN,
        "item of a project task: all tasks that it needs are settled, and another process has leased it",
    ),
    Move(_W.OPEN, Assign, _W.RUNNING, "a worker of this session is told to lease it"),
    Move(_W.OPEN, Fail, _W.FAILING, "a task that it needs failed for the item, or the item killed too many workers"),
    Move(_W.OPEN, Committed, _W.SETTLED, "another process committed its outcome"),
    Move(
        _W.OPEN,
        Refused,
        _W.FOREIGN,
        "another process has leased an earlier unit of the shard, which may include the item",
    ),
    Move(
        _W.OPEN,
        Lost,
        _W.FOREIGN,
        "the worker between them died: the earlier unit of another process may include the item",
    ),
    Move(_W.RUNNING, Committed, _W.SETTLED, "its worker or another process committed its outcome"),
    Move(_W.RUNNING, Shrink, _W.OPEN, "its unit was shortened, and the item returns to the queue or to an idle worker"),
    Move(_W.RUNNING, Finished, _W.OPEN, "its worker finished the unit without processing the item"),
    Move(_W.RUNNING, Fail, _W.FAILING, "a task that it needs failed for the item meanwhile"),
    Move(_W.RUNNING, Lost, _W.OPEN, "its worker died"),
    Move(
        _W.RUNNING, Lost, _W.FOREIGN, "its worker died, and a unit that another process has leased may include the item"
    ),
    Move(_W.RUNNING, Refused, _W.FOREIGN, "another process has the lease of its unit"),
    Move(_W.RUNNING, Refused, _W.OPEN, "another process has the lease of its unit, but that unit ends before the item"),
    Move(_W.FOREIGN, Committed, _W.OPEN, "the start of the leased unit is settled, and the item is not"),
    Move(_W.FOREIGN, Committed, _W.SETTLED, "the process that leased it committed its outcome"),
    Move(_W.FOREIGN, Released, _W.OPEN, "the process that leased it died or hangs"),
    Move(_W.FAILING, Committed, _W.SETTLED, "its failure is durable"),
    Move(_W.FAILING, Committed, _W.OPEN, "the file of its failure exists, but its content is invalid"),
    Move(_W.SETTLED, Committed, _W.OPEN, "an input of a project task was replaced, or its outcome is damaged now"),
    Move(_W.SETTLED, Committed, _W.RUNNING, "its outcome is damaged now, and its worker is still processing it"),
)

WORKER_LIFE: tuple[Move[WorkerState], ...] = (
    Move(_P.SPAWNING, Ready, _P.FRESH, "the worker is ready for a unit"),
    Move(_P.SPAWNING, Lost, _P.DEAD, "the worker died during its start"),
    Move(
        _P.FRESH,
        Assign,
        _P.RUNNING,
        "the worker gets any unit, also a unit of a single item that killed a worker before",
    ),
    Move(_P.FRESH, Retire, _P.RETIRED, "the session ends"),
    Move(_P.FRESH, Lost, _P.DEAD, "the worker died while idle"),
    Move(_P.RUNNING, Shrink, _P.RUNNING, "the unit of the worker was shortened"),
    Move(_P.RUNNING, Finished, _P.IDLE, "the unit is done, or its time is up"),
    Move(_P.RUNNING, Refused, _P.IDLE, "another process has the lease of the unit"),
    Move(_P.RUNNING, Lost, _P.DEAD, "the worker died; its uncommitted items are open again"),
    Move(
        _P.IDLE,
        Assign,
        _P.RUNNING,
        "the worker gets any unit, except a unit of a single item that killed a worker before",
    ),
    Move(_P.IDLE, Retire, _P.RETIRED, "the worker is worn out, is replaced by a fresh worker, or the session ends"),
    Move(_P.IDLE, Lost, _P.DEAD, "the worker died while idle"),
    Move(_P.RETIRED, Lost, _P.DEAD, "the worker exited as expected, which does not count as a death"),
)

BATCH_LIFE: tuple[Move[BatchState], ...] = (
    Move(_B.PENDING, Assign, _B.RUNNING, "a process took a lease"),
    Move(
        _B.RUNNING,
        Committed,
        _B.COMPLETED,
        "the last open pair of item and task is settled, and all pairs have a result",
    ),
    Move(_B.RUNNING, Committed, _B.PARTIAL, "the last open pair of item and task is settled, and some pairs failed"),
    Move(_B.RUNNING, Committed, _B.FAILED, "the last open pair of item and task is settled, and all pairs failed"),
    Move(_B.FAILED, Committed, _B.RUNNING, "a later round replaced an input of a project task"),
    Move(_B.FAILED, Committed, _B.PARTIAL, "a later round replaced a failure, and other failures are left"),
    Move(_B.FAILED, Committed, _B.COMPLETED, "a later round replaced the last failure"),
    Move(_B.PARTIAL, Committed, _B.COMPLETED, "a later round replaced the last failure"),
    Move(_B.PARTIAL, Committed, _B.RUNNING, "a later round replaced an input of a project task"),
)
