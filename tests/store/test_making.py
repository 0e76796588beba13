"""Tests of the creation of a store while other processes create the same store and begin to work in it."""

from __future__ import annotations

from pathlib import Path

from codebatch.store.batches.store_directory import create_store, open_store
from codebatch.system.files.files import RealFiles
from codebatch.system.files.system_calls import RealCalls
from tests.support.calls import Operation, WatchedCalls


def _create_and_sweep(root: Path) -> str:
    """Create the same store as another process, and sweep files of dead processes as an only writer does."""
    store, _ = create_store(RealFiles(), root)
    with store.writing():
        return store.id


def test_concurrent_store_creation_yields_a_single_store(tmp_path: Path) -> None:
    calls = 0
    at: int | None = None
    store_ids: list[str] = []

    def watch(_: Operation) -> None:
        nonlocal calls
        if calls == at:
            calls += 1
            store_ids.append(_create_and_sweep(root))
        calls += 1

    root = tmp_path / "alone"
    create_store(RealFiles(WatchedCalls(RealCalls(), watch)), root)
    assert calls > 30
    for at in range(calls):
        calls, root = 0, tmp_path / str(at)
        store_ids.clear()
        store, _ = create_store(RealFiles(WatchedCalls(RealCalls(), watch)), root)
        assert store_ids == [store.id] == [open_store(RealFiles(), root).id], f"call {at}"
        assert not [path for path in root.rglob("*") if path.name.endswith(".tmp")], f"call {at}"
