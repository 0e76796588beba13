"""Tests of a worker's position in its unit, according to its progress cell."""

from __future__ import annotations

import pytest

from codebatch.coordinator.processes.worker_backend import unit_position
from codebatch.model.outcome import WorkUnit
from codebatch.model.shard import ShardId
from codebatch.system.processes.progress_cell import PHASE_BATCHED, PHASE_ITEM, PHASE_LEASE, WorkerStep

UNIT = WorkUnit(shard=ShardId("00000001"), start=4, end=10, tasks=("parse",))


@pytest.mark.parametrize(
    ("cell_unit", "phase", "expected"),
    [(2, PHASE_ITEM, 7), (2, PHASE_BATCHED, 10), (2, PHASE_LEASE, 4), (1, PHASE_ITEM, 4)],
)
def test_progress_of_the_previous_unit_is_ignored(cell_unit: int, phase: int, expected: int) -> None:
    assert unit_position(WorkerStep(0, 0, 0, cell_unit, 7, 8, phase), UNIT, units=2) == expected


def test_unreadable_progress_leaves_nothing_to_steal() -> None:
    assert unit_position(None, UNIT, units=1) == UNIT.end
