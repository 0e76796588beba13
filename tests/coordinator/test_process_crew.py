"""Tests of the process crew: signals that it receives, and processes that it must not leave behind."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import cast

import pytest

from codebatch.coordinator.analysis.process_backend import ProcessWorkerBackend
from codebatch.coordinator.processes.limits import ResourceLimits
from codebatch.coordinator.processes.signals import SignalCounter
from codebatch.coordinator.processes.worker_backend import DrainRequest, KilledFor, TickPassed
from codebatch.coordinator.processes.workers import WorkerDeath, WorkerProcess
from codebatch.errors import StoreUnwritable
from codebatch.model.outcome import HolderId
from codebatch.protocol.launch import WorkerSettings
from codebatch.scheduling.events import WorkerId
from codebatch.store.batches.store_directory import create_store
from codebatch.system.files.files import RealFiles
from codebatch.system.stopwatch import OBSERVATION_GAP_SECONDS_MAX
from tests.support.batches import make_batch


@pytest.fixture
def crew(tmp_path: Path) -> ProcessWorkerBackend:
    store, _ = create_store(RealFiles(), tmp_path / "store")
    batch = make_batch(store, [b"a"], shard_items=1)
    return ProcessWorkerBackend(
        batch,
        WorkerSettings(store=str(store.root), batch=batch.id, coordinator=HolderId("0" * 32)),
        limits=ResourceLimits(file_seconds=1.0, project_seconds=1.0, memory_bytes=1 << 30),
        workers_max=1,
        running_ns=lambda: 0,
    )


class _FailingCleanupWorker:
    """A replacement of a WorkerProcess whose directory cannot be removed."""

    def __init__(self, log: list[str]) -> None:
        self._log = log

    def kill(self, reason: KilledFor) -> None:
        self._log.append(reason)

    def reap_and_kill_group(self) -> WorkerDeath:
        self._log.append("buried")
        raise StoreUnwritable("read-only")


def test_every_worker_is_killed_although_cleanup_fails(crew: ProcessWorkerBackend) -> None:
    log: list[str] = []
    before = signal.getsignal(signal.SIGINT)
    crew.begin()
    for number in (1, 2):
        crew._workers[WorkerId(number)] = cast("WorkerProcess", _FailingCleanupWorker(log))
    with pytest.raises(StoreUnwritable):
        crew.end()
    assert log == ["abandoned", "abandoned", "buried", "buried"]
    assert signal.getsignal(signal.SIGINT) is before


class _LateSignal(SignalCounter):
    """A counter whose signal arrives between reading the count and reading the first signal."""

    _count = 0

    @property
    def count(self) -> int:
        count_before, self._count, self.first = self._count, 1, signal.SIGTERM
        return count_before

    @count.setter
    def count(self, count: int) -> None:
        self._count = count


def test_signal_between_two_looks_is_reported_once(crew: ProcessWorkerBackend) -> None:
    crew._signals = _LateSignal()
    crew.begin()
    try:
        assert [*crew.wait(), *crew.wait()] == [DrainRequest("SIGTERM")]
    finally:
        crew.end()


def test_ticks_are_emitted_at_most_ten_times_a_second(crew: ProcessWorkerBackend) -> None:
    """The time in which this process was stopped is not counted, because the workers were stopped too."""
    clock = [0]
    crew._running_ns = lambda: clock[0]
    crew.begin()
    try:
        ticks = []
        for clock[0] in (50_000_000, 250_000_000, 300_000_000, 3_600_250_000_000):
            ticks += crew.wait()
        assert ticks == [TickPassed(0.25), TickPassed(OBSERVATION_GAP_SECONDS_MAX)]
    finally:
        crew.end()
