"""Tests of holders on other hosts, whose liveness is unknown here: a run waits, reports them, and can take over."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codebatch.model.documents import encode_document
from codebatch.store import layout
from codebatch.store.batches.holders import HolderFile, HolderRegistration, LeaseReader, new_holder_id
from codebatch.system.files.files import RealFiles
from codebatch.system.host import HostBoot, this_host
from tests.support.command_line import CommandLine, make_project
from tests.support.worker_processes import open_latest

ELSEWHERE = HostBoot(name="elsewhere", boot="00000000-0000-0000-0000-000000000000")

_WAIT = """
import json
from pathlib import Path
from codebatch.coordinator.processes.limits import ResourceLimits
from codebatch.coordinator.analysis.progress_counter import RunScope
from codebatch.coordinator.analysis.execution import execute
from codebatch.errors import CodebatchError
from codebatch.protocol.launch import WorkerSettings
from codebatch.store.batches.holders import new_holder_id
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.batches.store_directory import open_store
from codebatch.system.files.files import RealFiles
from codebatch.plugins.catalogue import TaskCatalogue

store = open_store(RealFiles(), Path("store"))
limits = ResourceLimits(file_seconds=30, project_seconds=60, memory_bytes=1 << 30, host_seconds=0.5)
try:
    batch = resolve_batch(store, None)
    workers = WorkerSettings(store=str(store.root), batch=batch.id, coordinator=new_holder_id())
    execute(store, batch, workers, catalogue=TaskCatalogue(), jobs=1, limits=limits, scope=RunScope(), watcher=None)
except CodebatchError as error:
    print(json.dumps([error.exit_status, error.code, error.message, error.hint]))
"""


def _plan(codebatch: CommandLine) -> Path:
    """Plan a batch without executing it. Return its directory."""
    make_project(codebatch.directory / "tree")
    snapshot = codebatch("snapshot", "tree", "--store", "store", "--json").json["snapshot_id"]
    codebatch("batch", "init", "--snapshot", snapshot, "--store", "store")
    return open_latest(codebatch.directory / "store").root


def _lease_from_another_host(root: Path, host: HostBoot = ELSEWHERE) -> HolderFile:
    """Lease the only shard for a worker of another host that never continues."""
    about = HolderFile(holder=new_holder_id(), role="worker", pid=4242, host=host, since_ns=1_700_000_000_000_000_000)
    (shard,) = open_latest(root.parent.parent).plan().shards
    path = root / layout.HOLDERS / about.holder
    path.write_bytes(encode_document(about))
    os.link(path, root / layout.LEASES / layout.lease_name(shard.id, 0, 1))
    return about


@pytest.fixture
def codebatch(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


def test_run_that_waits_for_another_host_reports_the_holder_and_ends(codebatch: CommandLine) -> None:
    about = _lease_from_another_host(_plan(codebatch))
    ended = subprocess.run(
        [sys.executable, "-c", _WAIT], cwd=codebatch.directory, env=codebatch.environment, capture_output=True,
        timeout=60, check=True,
    )  # fmt: skip
    status, code, message, hint = json.loads(ended.stdout)
    assert (status, code) == (3, "batch_incomplete")
    for part in ("1 unit", "pid 4242", "'elsewhere'", "since 2023-11-14T22:13:20Z", about.holder):
        assert part in message
    command = hint.split("codebatch ", 1)[1].partition(";")[0]
    assert command.endswith("--take-over")
    assert codebatch(*command.split(), "--store", "store", "--json").json["status"] == "COMPLETED"


@pytest.mark.parametrize("command", ["run tree", "run --batch latest", "resume"])
def test_take_over_executes_work_leased_by_another_host(codebatch: CommandLine, command: str) -> None:
    _lease_from_another_host(_plan(codebatch))
    answer = codebatch(*command.split(), "--take-over", "--store", "store", "--json").json
    assert answer["status"] == "COMPLETED"
    assert len(codebatch("batch", "list", "--store", "store", "--json").json) == 1


def test_holder_of_the_same_boot_with_another_host_name_is_dead(codebatch: CommandLine) -> None:
    """A container that was created again has another host name and the same boot.

    The flock of its holder is free, so it is dead and no run waits.
    """
    root = _plan(codebatch)
    about = _lease_from_another_host(root, HostBoot(name="0123456789ab", boot=this_host().boot))
    if this_host().boot:
        assert not LeaseReader(RealFiles(), root).is_live(about)
        assert codebatch("run", "tree", "--store", "store", "--json").json["status"] == "COMPLETED"


def test_live_local_holder_is_not_taken_over(tmp_path: Path) -> None:
    root = _plan(CommandLine(tmp_path))
    (shard,) = open_latest(tmp_path / "store").plan().shards
    about = HolderFile(holder=new_holder_id(), role="worker", pid=os.getpid(), host=this_host(), since_ns=1)
    holder = HolderRegistration(RealFiles(), root, about)
    assert holder.try_lease(shard.id, 0, 1)
    (lease,) = LeaseReader(RealFiles(), root, take_over=True).read_leases().values()
    assert lease.is_live
    holder.close()
