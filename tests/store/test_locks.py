"""Tests of the store lock: a writer excludes garbage collection without a gap while any of its processes lives."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codebatch.coordinator.analysis.progress_counter import RunProgress
from codebatch.coordinator.processes.workers import start_worker
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.project.stores import StoreLocator
from codebatch.operations.runs.execution import ExecutionSettings, Listener, RunAction
from codebatch.operations.runs.run import run_paths
from codebatch.protocol.launch import WorkerSettings
from codebatch.scheduling.events import WorkerId
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.holders import new_holder_id
from codebatch.store.batches.store_directory import StoreDir
from codebatch.system.files.files import RealFiles
from tests.support.batches import make_batch
from tests.support.command_line import wait_until


def _is_free(root: Path) -> bool:
    lock = RealFiles().try_lock(root / "locks" / "store")
    if lock is not None:
        lock.release()
    return lock is not None


def _is_close_on_exec(pid: int, descriptor: int) -> bool:
    (flags,) = (
        line.split()[1]
        for line in Path(f"/proc/{pid}/fdinfo/{descriptor}").read_text().splitlines()
        if line.startswith("flags:")
    )
    return bool(int(flags, 8) & os.O_CLOEXEC)


def test_store_lock_of_a_dead_coordinator_ends_with_its_last_worker(store: StoreDir) -> None:
    batch = make_batch(store, [b"a"], shard_items=1)
    with store.writing() as lock:
        worker = start_worker(
            WorkerId(1),
            batch,
            WorkerSettings(
                store=str(store.root), batch=batch.id, coordinator=new_holder_id(), store_lock=lock.descriptor
            ),
        )
    try:
        wait_until(lambda: bool(worker.receive()), "it says hello")
        assert not _is_free(store.root)
        if Path("/proc/self/fdinfo").exists():
            assert _is_close_on_exec(worker.process.pid, lock.descriptor)
    finally:
        worker.kill("abandoned")
        worker.reap_and_kill_group()
    assert _is_free(store.root)


class _LockProbe(Listener):
    def __init__(self, root: Path) -> None:
        self.root = root
        self.was_free: list[bool] = []

    def chosen(self, batch: BatchDir, action: RunAction) -> None:
        self.was_free.append(_is_free(self.root))

    def update(self, progress: RunProgress) -> None:
        self.was_free.append(_is_free(self.root))


def test_run_locks_the_store_from_planning_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    looking = _LockProbe(tmp_path / "store")
    execution = ExecutionSettings(configuration=load_configuration(tmp_path), jobs=1)
    run_paths((Path("tree"),), StoreLocator(tmp_path / "store"), execution, pipeline="parse", listener=looking)
    assert len(looking.was_free) > 1
    assert not any(looking.was_free)
    assert _is_free(tmp_path / "store")
