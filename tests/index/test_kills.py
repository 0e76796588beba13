"""Tests of killed or refused builds of an index: they leave the old index, the new one or none, but no part of one."""

from __future__ import annotations

import errno
import os
import pickle
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from codebatch.errors import StoreUnwritable
from codebatch.index.generations import list_generations
from codebatch.index.read import open_index
from codebatch.operations.runs.indexing import build_index, verify_index
from codebatch.store.batches.batch_directory import batch_ids, open_batch
from codebatch.store.batches.store_directory import StoreDir, create_store, open_store
from codebatch.system.files.files import RealFiles
from tests.support.calls import Fate, Operation, WatchedCalls
from tests.support.disk import Disk
from tests.support.schedule import Killed
from tests.support.stores import make_merged

from .batches import cut_small

PLACE = Path("/a/b/store")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["first", "first, in parts", "another, in parts"])
def old(request: pytest.FixtureRequest) -> Iterator[Disk]:
    """A store with a batch that has no index yet, or one."""
    disk = Disk()
    store = create_store(RealFiles(disk.calls()), PLACE)[0]
    make_merged(store, [b"a", b"bb"])
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "first":
            cut_small(patch)
        if request.param == "another, in parts":
            _build_index(store)
        disk.sync()
        yield disk


def _build_index(store: StoreDir) -> None:
    (batch_id,) = batch_ids(store)
    build_index(store, open_batch(store, batch_id))


def _check(disk: Disk, *, had_one: bool) -> None:
    """Check that an existing index is sound and equals the records, and that a new one can be built."""
    store = open_store(RealFiles(disk.calls()), PLACE)
    (batch_id,) = batch_ids(store)
    batch = open_batch(store, batch_id)
    index = open_index(store, batch_id)
    assert index is not None or not had_one
    if index is not None:
        index.check()
        verify_index(store, batch)
    _build_index(store)
    assert len(list_generations(store, batch_id)) == 1
    assert verify_index(store, batch).postings > 5
    assert store.files.unfinished(store.root / "indexes") == []
    assert store.files.unfinished(store.root / "indexes" / "terms") == []


def _has_index(disk: Disk) -> bool:
    store = open_store(RealFiles(pickle.loads(pickle.dumps(disk)).calls()), PLACE)
    return bool(list_generations(store, batch_ids(store)[0]))


@pytest.mark.parametrize("seed", [None, 1])
def test_build_killed_at_any_call_leaves_a_sound_index_or_none(old: Disk, seed: int | None) -> None:
    """The check is made with and without a power loss after the kill."""
    had_one = _has_index(old)
    for at in range(1000):
        disk = pickle.loads(pickle.dumps(old))
        calls = iter(range(at))

        def die(_: Operation, calls: Iterator[int] = calls) -> Fate | None:
            return None if next(calls, None) is not None else Fate(Killed())

        mortal = disk.calls()
        is_over = False
        try:
            _build_index(open_store(RealFiles(WatchedCalls(mortal, die)), PLACE))
            is_over = True
        except Killed:
            mortal.exit()
        if seed is not None:
            disk.lose_power(random.Random(seed + at))
        _check(disk, had_one=had_one or is_over)
        if is_over:
            assert at > 20
            return


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_build_with_refused_writes_leaves_a_sound_index_or_none(old: Disk, number: int) -> None:
    had_one = _has_index(old)
    for at in range(0, 1000, 3):
        disk = pickle.loads(pickle.dumps(old))
        writes = iter(range(at))

        def refuse(operation: Operation, writes: Iterator[int] = writes) -> Fate | None:
            if not operation.is_write or next(writes, None) is not None:
                return None
            return Fate(OSError(number, os.strerror(number)))

        is_over = False
        try:
            _build_index(open_store(RealFiles(WatchedCalls(disk.calls(), refuse)), PLACE))
            is_over = True
        except StoreUnwritable:
            pass
        _check(disk, had_one=had_one or is_over)
        if is_over:
            assert at > 5
            return
