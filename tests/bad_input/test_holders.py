"""Holders with damaged or missing files: only the lock shows whether they are alive, and dead holders block nobody."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch.model.outcome import HolderId
from codebatch.model.shard import ShardId
from codebatch.store.batches.holders import UNKNOWN_HOLDER, HolderFile, HolderRegistration, LeaseReader
from codebatch.system.files.files import RealFiles
from codebatch.system.host import this_host

ID = HolderId("a" * 32)
SHARD = ShardId("0123abcd")


def _make_holder(root: Path) -> HolderRegistration:
    about = HolderFile(holder=ID, role="worker", pid=os.getpid(), host=this_host(), since_ns=1)
    return HolderRegistration(RealFiles(), root, about)


def cut(path: Path) -> None:
    os.truncate(path, 10)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def make_foreign(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(20)
        file.write(b"\xff")


def rename_holder(path: Path) -> None:
    """Replace the file by the valid file of another holder."""
    other = HolderFile(holder=HolderId("b" * 32), role="worker", pid=1, host=this_host(), since_ns=1)
    (path.parent.parent / "other").mkdir()
    HolderRegistration(RealFiles(), path.parent.parent / "other", other).close()
    with path.open("r+b") as file:
        file.write((path.parent.parent / "other" / "holders" / other.holder).read_bytes())


@pytest.mark.parametrize("damage", [cut, empty, make_foreign, rename_holder], ids=lambda damage: str(damage.__name__))
def test_damaged_holder_is_alive_while_its_lock_is_held(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    holder = _make_holder(tmp_path)
    assert holder.try_lease(SHARD, 0, 3)
    damage(tmp_path / "holders" / ID)
    for _ in range(2):
        reader = LeaseReader(RealFiles(), tmp_path)
        lease = reader.read_leases()[SHARD, 0]
        assert (lease.epoch, lease.is_live) == (3, True)
        ((holder_file, is_live),) = reader.read_holders()
        assert (holder_file.holder, holder_file.role, is_live) == (ID, "worker", True)
        if damage is not rename_holder:  # A valid file is trusted, whichever holder it names.
            assert lease.holder.holder == ID
    holder.close()
    reader = LeaseReader(RealFiles(), tmp_path)
    lease = reader.read_leases()[SHARD, 0]
    assert (lease.epoch, lease.is_live) == (3, False)
    assert [is_live for _, is_live in reader.read_holders()] == [False]


def test_damaged_lease_without_a_known_holder_is_dead(tmp_path: Path) -> None:
    holder = _make_holder(tmp_path)
    assert holder.try_lease(SHARD, 7, 2)
    (tmp_path / "holders" / ID).unlink()
    assert LeaseReader(RealFiles(), tmp_path).read_leases()[SHARD, 7].holder.holder == ID
    empty(tmp_path / "leases" / f"{SHARD}.7.2")
    lease = LeaseReader(RealFiles(), tmp_path).read_leases()[SHARD, 7]
    assert (lease.holder.holder, lease.epoch, lease.is_live) == (UNKNOWN_HOLDER, 2, False)
    holder.close()
