"""Tests of the limits of a file, by the clock of the process that enforces them (SPEC.md "Limits")."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from codebatch.coordinator.processes import limits
from codebatch.coordinator.processes.limits import ResourceGuard, ResourceLimits, default_memory_bytes
from codebatch.coordinator.processes.worker_backend import INVALID_MESSAGES
from codebatch.coordinator.processes.workers import WorkerDeath, WorkerProcess
from codebatch.protocol.messages import MessageBuffer, Stop, encode_message
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir, BatchFile
from codebatch.store.batches.holders import HolderFile, new_holder_id
from codebatch.system.files.files import RealFiles
from codebatch.system.host import HostBoot, this_host
from codebatch.system.processes import process_timer
from codebatch.system.processes.process_timer import ProcessTimer, processor_wait_ns
from codebatch.system.processes.progress_cell import PHASE_BATCHED, PHASE_ITEM, PHASE_PROJECT, ProgressCell, WorkerStep
from codebatch.system.stopwatch import StateStopwatch


def test_stopwatch_ignores_time_between_distant_looks() -> None:
    watch: StateStopwatch[str] = StateStopwatch()
    watch.observe(100.0)
    assert watch.seconds_in_state("worker", 1) == 0.0
    watch.observe(100.5)
    assert watch.seconds_in_state("worker", 1) == 0.5
    watch.observe(4000.0)
    assert watch.seconds_in_state("worker", 1) == 0.5
    watch.observe(4000.25)
    assert watch.seconds_in_state("worker", 1) == 0.75


def test_stopwatch_restarts_at_a_new_step() -> None:
    watch: StateStopwatch[str] = StateStopwatch()
    for now in (1.0, 1.5):
        watch.observe(now)
        watch.seconds_in_state("worker", 1)
    assert watch.seconds_in_state("worker", 2) == 0.0


def test_batched_step_gets_a_tenth_more_time_per_additional_file() -> None:
    limits = ResourceLimits(project_seconds=100.0, file_seconds=30.0, memory_bytes=1)
    assert limits.seconds_for(WorkerStep(0, 0, 0, 0, 4, 5, PHASE_ITEM)) == 30.0
    assert limits.seconds_for(WorkerStep(0, 0, 0, 0, 0, 64, PHASE_BATCHED)) == pytest.approx(219.0)


def _killed_for(reason: str) -> WorkerProcess:
    return cast("WorkerProcess", SimpleNamespace(killed_for=reason))


@pytest.mark.parametrize(
    ("killed_for", "returncode", "oom_kills", "expected"),
    [
        ("timeout", -signal.SIGKILL, 0, ("timeout", False)),
        ("memory", -signal.SIGKILL, 0, ("memory", False)),
        ("", -signal.SIGKILL, 1, ("memory", False)),
        ("", -signal.SIGKILL, 0, ("crash", True)),
        ("abandoned", -signal.SIGKILL, 0, ("crash", False)),
        ("", -signal.SIGSEGV, 1, ("crash", False)),
        ("", 7, 0, ("crash", False)),
        ("", 0, 1, ("crash", False)),
    ],
)
def test_kill_without_a_known_cause_counts_as_from_outside(
    monkeypatch: pytest.MonkeyPatch, killed_for: str, returncode: int, oom_kills: int, expected: tuple[str, bool]
) -> None:
    counts = iter([5, 5 + oom_kills])
    monkeypatch.setattr(limits, "oom_kills", lambda: next(counts))
    guard = ResourceGuard(ResourceLimits(project_seconds=100.0, file_seconds=30.0, memory_bytes=1))
    death = WorkerDeath(returncode=returncode, memory_peak_bytes=0)
    assert guard.death_reason(_killed_for(killed_for), death) == expected


def test_holder_on_another_host_is_never_stuck(tmp_path: Path) -> None:
    """The progress cell is on our disk, but its clock is another host's."""
    (tmp_path / layout.HOLDERS).mkdir()
    batch = BatchDir(RealFiles(), tmp_path, cast("BatchFile", None))
    guard = ResourceGuard(ResourceLimits(project_seconds=1.0, file_seconds=1.0, memory_bytes=1))
    is_stuck = {}
    for host in (this_host(), HostBoot(name="elsewhere", boot="x")):
        about = HolderFile(holder=new_holder_id(), role="worker", pid=1, host=host, since_ns=1)
        ProgressCell(batch.files, tmp_path / layout.HOLDERS / layout.cell_name(about.holder), create=True).close()
        for now in range(10):
            guard.begin_turn(float(now))
            is_stuck[host] = guard.is_holder_stuck(batch, about)
    assert list(is_stuck.values()) == [True, False]


def test_holder_on_another_host_gets_the_time_limit_of_its_step(tmp_path: Path) -> None:
    (tmp_path / layout.HOLDERS).mkdir()
    batch = BatchDir(RealFiles(), tmp_path, cast("BatchFile", None))
    elsewhere = HostBoot(name="elsewhere", boot="x")
    about = HolderFile(holder=new_holder_id(), role="worker", pid=1, host=elsewhere, since_ns=1)
    cell = ProgressCell(batch.files, tmp_path / layout.HOLDERS / layout.cell_name(about.holder), create=True)
    silent_from: dict[int, int] = {}
    for phase in (PHASE_ITEM, PHASE_PROJECT):
        guard = ResourceGuard(ResourceLimits(project_seconds=100.0, file_seconds=30.0, memory_bytes=1))
        cell.write_step(WorkerStep(1, 0, 0, 0, 0, 1, phase))
        for now in range(200):
            guard.begin_turn(float(now))
            if guard.is_holder_silent(batch, about, 0):
                silent_from.setdefault(phase, now)
    cell.close()
    assert silent_from == {PHASE_ITEM: 61, PHASE_PROJECT: 106}


def test_torn_messages_of_equal_length_are_distinguished() -> None:
    buffer = MessageBuffer()
    killed_for: list[str] = []
    worker = SimpleNamespace(id=1, buffer=buffer, killed_for="", step=lambda: None, kill=killed_for.append)
    worker.process = SimpleNamespace(pid=os.getpid())
    guard = ResourceGuard(ResourceLimits(project_seconds=100.0, file_seconds=30.0, memory_bytes=1 << 40))
    message = encode_message(Stop())
    for now in range(20):
        guard.begin_turn(float(now))
        # Send a part of a message and its rest alternately, then a part without a rest.
        part = message[3:] if now % 2 and now < 12 else message[:3] if now < 13 else b""
        list(buffer.feed(part))
        guard.enforce_limits([cast("WorkerProcess", worker)])
        assert not killed_for or now > 17
    assert killed_for[0] == INVALID_MESSAGES


@pytest.mark.parametrize(
    ("wait_share", "killed_at"),
    [
        (0.0, 31),  # Nothing waits for a processor: the step ends after its limit.
        (0.5, 60),  # Half of the time is spent in waits.
        (2.0, None),  # A process with more waits than time has its limit twenty times.
    ],
)
def test_waits_for_a_processor_do_not_count_for_the_limit(wait_share: float, killed_at: int | None) -> None:
    killed: list[int] = []
    now = 0
    worker = SimpleNamespace(id=1, buffer=MessageBuffer(), killed_for="", process=SimpleNamespace(pid=7))
    worker.step = lambda: WorkerStep(5, 0, 0, 0, 0, 1, PHASE_ITEM)
    worker.kill_overdue = lambda: killed.append(now)
    guard = ResourceGuard(
        ResourceLimits(project_seconds=100.0, file_seconds=30.0, memory_bytes=1 << 40),
        lambda pid: 10**15 + round(wait_share * now * 1e9) if pid == 7 else 0,
    )
    for now in range(100):
        guard.begin_turn(float(now))
        guard.enforce_limits([cast("WorkerProcess", worker)])
    assert (killed[0] if killed else None) == killed_at


def test_timer_counts_time_without_waits_for_a_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = {"now": 5.0, "waited": 3.0, "own": 7.0}
    monkeypatch.setattr(process_timer, "running_ns", lambda: round(clock["now"] * 1e9))
    monkeypatch.setattr(
        process_timer,
        "processor_wait_ns",
        lambda pid: round(clock["own" if pid == os.getpid() else "waited"] * 1e9),
    )
    timer = ProcessTimer(1)
    clock.update(now=15.0, waited=6.0, own=9.0)
    assert timer.seconds() == pytest.approx(10.0 - 3.0 - 2.0)
    clock.update(now=15.0, waited=0.0, own=7.0)  # The process has ended.
    assert timer.seconds() == pytest.approx(10.0)
    clock.update(now=25.0, waited=99.0)
    assert timer.seconds() == pytest.approx(20.0 / 20)


def test_wait_for_a_processor_is_read_from_the_kernel() -> None:
    assert processor_wait_ns(os.getpid()) >= 0
    assert processor_wait_ns(2**30) == 0


def test_workers_share_the_available_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "available_memory", lambda: 3 << 30)
    assert [default_memory_bytes(jobs) for jobs in (1, 3, 6, 48)] == [2 << 30, 1 << 30, 512 << 20, 256 << 20]
