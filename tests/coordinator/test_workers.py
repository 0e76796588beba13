"""Where a worker stands, by what it wrote last."""

from __future__ import annotations

import socket
import subprocess
from types import SimpleNamespace
from typing import cast

import pytest

from codebatch.coordinator.workers import WorkerProcess
from codebatch.engine.events import WorkerId
from codebatch.model.outcome import HolderId, Unit
from codebatch.model.shard import ShardId
from codebatch.store.batches import Batch
from codebatch.system.cell import PHASE_BATCHED, PHASE_ITEM, PHASE_LEASE, Cell, Step


@pytest.mark.parametrize(
    ("of_unit", "phase", "position"),
    [(2, PHASE_ITEM, 7), (2, PHASE_BATCHED, 10), (2, PHASE_LEASE, 4), (1, PHASE_ITEM, 4)],
)
def test_what_was_written_of_the_unit_before_says_nothing_of_this_one(of_unit: int, phase: int, position: int) -> None:
    step = Step(0, 0, 0, of_unit, 7, 8, phase)
    worker = WorkerProcess(
        id=WorkerId(1),
        holder=HolderId("0" * 32),
        process=cast("subprocess.Popen[bytes]", None),
        channel=cast("socket.socket", None),
        stderr=-1,
        batch=cast("Batch", None),
        cell=cast("Cell", SimpleNamespace(read=lambda: step)),
        units=2,
    )
    assert worker.position(Unit(shard=ShardId("00000001"), start=4, end=10, tasks=("parse",))) == position
