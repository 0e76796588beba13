"""Tests of holders and leases: liveness is known at every moment, and the number of leases is not limited."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from codebatch.errors import StoreUnwritable
from codebatch.model.outcome import HolderId
from codebatch.model.shard import ShardId
from codebatch.store import layout
from codebatch.store.batches.holders import HolderFile, HolderRegistration, LeaseReader
from codebatch.system.files.files import RealFiles
from codebatch.system.files.system_calls import RealCalls
from codebatch.system.host import HostBoot, this_host
from tests.support.calls import Fate, Operation, WatchedCalls
from tests.support.disk import Disk

BATCH = Path("/batch")
ID = HolderId("0" * 32)
SHARD = ShardId("00000001")


def _about() -> HolderFile:
    return HolderFile(holder=ID, role="worker", pid=1, host=this_host(), since_ns=1)


def _disk_with_batch_directories() -> Disk:
    disk = Disk()
    files = RealFiles(disk.calls())
    for name in (layout.HOLDERS, layout.LEASES):
        files.make_directory(BATCH / name)
    return disk


def test_live_holder_file_is_always_locked() -> None:
    """While a process registers as a holder, a reader finds either no holder file or a locked one."""
    disk = _disk_with_batch_directories()
    looked = 0

    def watch(_: Operation) -> None:
        nonlocal looked
        looked += 1
        assert all(is_live for _, is_live in LeaseReader(RealFiles(disk.calls()), BATCH).read_holders())

    HolderRegistration(RealFiles(WatchedCalls(disk.calls(), watch)), BATCH, _about())
    watch(Operation("end", BATCH))
    assert looked > 3


def test_failed_holder_registration_releases_its_lock(tmp_path: Path) -> None:
    swept: list[Operation] = []

    def watch(operation: Operation) -> None:
        if operation.call == "link" and not swept:
            swept.append(operation)
            for hidden in (tmp_path / layout.HOLDERS).glob(".*"):
                hidden.unlink()

    def count_open() -> int:
        return len(os.listdir("/dev/fd"))

    before = count_open()
    holder = HolderRegistration(RealFiles(WatchedCalls(RealCalls(), watch)), tmp_path, _about())
    assert swept
    assert count_open() == before + 1
    with pytest.raises(StoreUnwritable, match="already exists"):
        HolderRegistration(RealFiles(), tmp_path, _about())
    assert count_open() == before + 1
    holder.close()


def test_holder_with_the_maximum_of_links_leases_by_a_copy() -> None:
    disk = _disk_with_batch_directories()
    refused: list[Operation] = []

    def watch(operation: Operation) -> Fate | None:
        if operation.call == "link" and operation.path.parent.name == layout.LEASES and not refused:
            refused.append(operation)
            return Fate(OSError(errno.EMLINK, "Too many links"))
        return None

    holder = HolderRegistration(RealFiles(WatchedCalls(disk.calls(), watch)), BATCH, _about())
    assert holder.try_lease(SHARD, 0, 1)
    assert holder.try_lease(SHARD, 5, 1)
    leases = LeaseReader(RealFiles(disk.calls()), BATCH).read_leases()
    assert [(lease.holder.holder, lease.is_live) for lease in leases.values()] == [(ID, True)] * 2
    assert refused


def test_holder_from_before_the_last_boot_is_dead() -> None:
    host = HostBoot(name=this_host().name, boot="another boot")
    before = HolderFile(holder=ID, role="worker", pid=1, host=host, since_ns=1)
    elsewhere = HolderFile(holder=ID, role="worker", pid=1, host=HostBoot(name="elsewhere", boot="x"), since_ns=1)
    reader = LeaseReader(RealFiles(_disk_with_batch_directories().calls()), BATCH)
    assert [reader.is_live(before), reader.is_live(elsewhere)] == [False, True]
