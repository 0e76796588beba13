"""Measure the scheduler alone, with simulated commits: `python -m bench.probes.engine ITEMS SHARD_ITEMS JOBS`.

Print JSON: microseconds of the start and of each dispatch (Assign, then its Committed and Finished), and events per
second.
"""

from __future__ import annotations

import sys
import time
from collections import deque

import msgspec

from codebatch.model.outcome import Commit, HolderId, TaskOutcome
from codebatch.model.record_counts import RecordCounts
from codebatch.model.shard import Shard, ShardId
from codebatch.scheduling.actions import AssignUnit, CompleteSession, SessionAction, SpawnWorker
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.scheduling.analysis.session import AnalysisSession
from codebatch.scheduling.events import OutcomesCommitted, SessionEvent, SessionStarted, UnitDone, WorkerId, WorkerIdle

TASKS = {"parse": (), "analyze": ("parse",), "symbols": ("parse",), "lint": ("parse",)}
_HOLDER = HolderId("0" * 32)
_COUNTS = RecordCounts()


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures that the probe prints."""

    dispatches: int
    start_us: float
    dispatch_us: float
    events_per_second: float


def measure(items: int, shard_items: int, jobs: int) -> Figures:
    """Drive one session from Started to Complete."""
    shards = [
        Shard(id=ShardId(f"{start // shard_items:08x}"), start=start, end=min(start + shard_items, items), bytes=0)
        for start in range(0, items, shard_items)
    ]
    costs = {shard.id: [float(item) for item in range(shard.items + 1)] for shard in shards}
    session = AnalysisSession(OutcomeLedger(shards, TASKS), costs=costs, jobs=jobs)
    spent = 0.0

    def handle(event: SessionEvent) -> list[SessionAction]:
        nonlocal spent
        began = time.process_time()
        actions = session.handle(event)
        spent += time.process_time() - began
        return actions

    waiting = deque(handle(SessionStarted()))
    start_s, spent = spent, 0.0
    workers = dispatches = events = 0
    is_complete = False
    while waiting:
        match waiting.popleft():
            case SpawnWorker():
                workers += 1
                waiting.extend(handle(WorkerIdle(WorkerId(workers))))
                events += 1
            case AssignUnit() as assign:
                dispatches += 1
                waiting.extend(handle(OutcomesCommitted((_commit(assign),))))
                waiting.extend(handle(UnitDone(assign.worker)))
                events += 2
            case CompleteSession():
                is_complete = True
            case _:
                pass
    assert is_complete, "the session stopped early"
    return Figures(
        dispatches=dispatches,
        start_us=start_s * 1e6,
        dispatch_us=spent / dispatches * 1e6,
        events_per_second=events / spent,
    )


def _commit(assign: AssignUnit) -> Commit:
    unit = assign.unit
    outcomes = tuple(
        TaskOutcome(shard=unit.shard, task=task, start=unit.start, end=unit.end, type="result", counts=_COUNTS)
        for task in unit.tasks
    )
    return Commit(segment=_HOLDER, epoch=assign.epoch, round=unit.round, outcomes=outcomes)


if __name__ == "__main__":
    print(msgspec.json.encode(measure(*map(int, sys.argv[1:4]))).decode())
