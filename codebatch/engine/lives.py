"""The lives of work, workers and batches: which states there are, and what leads from one to another.

None of these states is stored: a session derives them from the ledger and from what it was told, a batch's follows from
outcomes and live holders (SPEC.md "Batch states"). Random sessions are checked against the tables: each of these moves
happens, and no other.
"""

from __future__ import annotations

from enum import Enum
from typing import Generic, TypeVar

import msgspec

from codebatch.engine.actions import Action, Assign, Fail, Retire, Shrink
from codebatch.engine.events import Committed, Event, Finished, Lost, Ready, Refused, Released
from codebatch.engine.lifecycle import BatchState


class WorkState(str, Enum):
    """What an item of a unit is in, for one of its tasks, as one session sees it."""

    WAITING = "WAITING"
    OPEN = "OPEN"
    RUNNING = "RUNNING"
    FOREIGN = "FOREIGN"
    FAILING = "FAILING"
    SETTLED = "SETTLED"


class WorkerState(str, Enum):
    """What a worker is in, as its session sees it. A FRESH one is idle and never had a unit."""

    SPAWNING = "SPAWNING"
    FRESH = "FRESH"
    RUNNING = "RUNNING"
    IDLE = "IDLE"
    RETIRED = "RETIRED"
    DEAD = "DEAD"


State = TypeVar("State", WorkState, WorkerState, BatchState)


class Move(msgspec.Struct, Generic[State], frozen=True):
    """What leads from one state to another: an event, or an action that the session asks for; and when it does."""

    before: State
    by: type[Event] | type[Action]
    after: State
    when: str


_W, _P, _B = WorkState, WorkerState, BatchState

WORK_LIFE: tuple[Move[WorkState], ...] = (
    Move(_W.WAITING, Committed, _W.OPEN, "a project task: all that it needs is settled"),
    Move(_W.WAITING, Committed, _W.SETTLED, "the same, and somebody else's outcome of that is known"),
    Move(_W.WAITING, Committed, _W.FOREIGN, "the same, and another process is known to hold it"),
    Move(_W.OPEN, Assign, _W.RUNNING, "a worker of ours is told to lease it"),
    Move(_W.OPEN, Fail, _W.FAILING, "a task that it needs failed there, or it killed too many workers"),
    Move(_W.OPEN, Committed, _W.SETTLED, "somebody else did it"),
    Move(_W.OPEN, Refused, _W.FOREIGN, "another process has the unit before it, which may reach as far"),
    Move(_W.OPEN, Lost, _W.FOREIGN, "the same, for what was between them runs no more"),
    Move(_W.RUNNING, Committed, _W.SETTLED, "our worker did it, or somebody else"),
    Move(_W.RUNNING, Shrink, _W.OPEN, "it is in the tail, for a thief or for the queue"),
    Move(_W.RUNNING, Finished, _W.OPEN, "our worker did not come to it"),
    Move(_W.RUNNING, Fail, _W.FAILING, "a task that it needs failed there meanwhile"),
    Move(_W.RUNNING, Lost, _W.OPEN, "our worker is dead"),
    Move(_W.RUNNING, Lost, _W.FOREIGN, "the same, and what another process holds may reach as far"),
    Move(_W.RUNNING, Refused, _W.FOREIGN, "another process has its lease"),
    Move(_W.RUNNING, Refused, _W.OPEN, "the same, but there is a cut before it"),
    Move(_W.FOREIGN, Committed, _W.OPEN, "the start of what was held is settled, and it is not"),
    Move(_W.FOREIGN, Committed, _W.SETTLED, "whoever held it did it"),
    Move(_W.FOREIGN, Released, _W.OPEN, "its holder is dead or stuck"),
    Move(_W.FAILING, Committed, _W.SETTLED, "its failure is durable"),
    Move(_W.FAILING, Committed, _W.OPEN, "the name of its failure is taken by bytes that say nothing"),
    Move(_W.SETTLED, Committed, _W.OPEN, "what a project task was made of is replaced; or its outcome is garbage now"),
    Move(_W.SETTLED, Committed, _W.RUNNING, "its outcome is garbage now, and our worker is at it still"),
)

WORKER_LIFE: tuple[Move[WorkerState], ...] = (
    Move(_P.SPAWNING, Ready, _P.FRESH, "it can take a unit"),
    Move(_P.SPAWNING, Lost, _P.DEAD, "it died before"),
    Move(_P.FRESH, Assign, _P.RUNNING, "any unit, also one charged item alone"),
    Move(_P.FRESH, Retire, _P.RETIRED, "the session is over"),
    Move(_P.FRESH, Lost, _P.DEAD, "it died with nothing to do"),
    Move(_P.RUNNING, Shrink, _P.RUNNING, "its unit ends earlier"),
    Move(_P.RUNNING, Finished, _P.IDLE, "its unit is done, or as much as there was time for"),
    Move(_P.RUNNING, Refused, _P.IDLE, "its unit is another's"),
    Move(_P.RUNNING, Lost, _P.DEAD, "what it had not committed is open again"),
    Move(_P.IDLE, Assign, _P.RUNNING, "any unit but one charged item alone"),
    Move(_P.IDLE, Retire, _P.RETIRED, "it is worn, makes room for a fresh one, or the session is over"),
    Move(_P.IDLE, Lost, _P.DEAD, "it died with nothing to do"),
    Move(_P.RETIRED, Lost, _P.DEAD, "no death that counts"),
)

BATCH_LIFE: tuple[Move[BatchState], ...] = (
    Move(_B.PENDING, Assign, _B.RUNNING, "a lease is taken"),
    Move(_B.RUNNING, Committed, _B.COMPLETED, "the last open pair is settled, and all have a result"),
    Move(_B.RUNNING, Committed, _B.PARTIAL, "the last open pair is settled, and some failed"),
    Move(_B.RUNNING, Committed, _B.FAILED, "the last open pair is settled, and all failed"),
    Move(_B.FAILED, Committed, _B.RUNNING, "a later round replaced what a project task was made of"),
    Move(_B.FAILED, Committed, _B.PARTIAL, "a later round replaced a failure, and others are left"),
    Move(_B.FAILED, Committed, _B.COMPLETED, "a later round replaced the last failure"),
    Move(_B.PARTIAL, Committed, _B.COMPLETED, "a later round replaced the last failure"),
    Move(_B.PARTIAL, Committed, _B.RUNNING, "a later round replaced what a project task was made of"),
)
