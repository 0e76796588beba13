"""A store with a batch of the poison plugin's tasks over a made tree, and the command line to run it with."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil
import pytest

from tests.cli.process import CommandLine, write
from tests.faults.plugin.venom import ORPHAN_SECONDS_FILE

PLUGIN = Path(__file__).parent / "plugin"
_ORPHAN_SECONDS = f"6{os.getpid()}"

_PLAN = """
import sys
from pathlib import Path
from codebatch.coordinator.planning import make_plan, resolve_tasks
from codebatch.model.shard import ShardRule
from codebatch.store.batches import create_batch
from codebatch.snapshotting.selection import SourceRules
from codebatch.store.snapshots import load_snapshot
from codebatch.snapshotting.take import take_snapshot
from codebatch.store.store import create_store
from codebatch.system.files import RealFiles
from codebatch.system.task_catalogue import TaskCatalogue

store, _ = create_store(RealFiles(), Path("store").absolute())
taken = take_snapshot(store.files, store.root, [Path("tree").absolute()], SourceRules(), now=lambda: 0.0)
snapshot = load_snapshot(store.files, store.root, taken.snapshot_id)
catalogue = TaskCatalogue()
tasks = resolve_tasks(catalogue, ("venom", "symptom"))
rule = ShardRule(files_average=int(sys.argv[1]), files_min=1, files_max=256)
plan = make_plan(catalogue, snapshot, "poison", tasks, rule)
create_batch(store, plan, sources=(), at_ns=1)
"""

Poisoned = Callable[..., CommandLine]


@pytest.fixture
def poisoned(tmp_path: Path) -> Iterator[Poisoned]:
    """Makes a batch over files (name -> content), cut into shards of so many; whatever is left behind is killed."""

    def make(files: Mapping[str, str], *, shard: int = 16) -> CommandLine:
        for name, content in files.items():
            write(tmp_path / "tree" / name, content)
        write(tmp_path / ORPHAN_SECONDS_FILE, _ORPHAN_SECONDS)
        run = CommandLine(tmp_path, {"PYTHONPATH": str(PLUGIN)})
        subprocess.run([sys.executable, "-c", _PLAN, str(shard)], cwd=tmp_path, env=run.environment, check=True)
        return run

    yield make
    for process in orphans():
        process.kill()


def orphans() -> list[psutil.Process]:
    """Children of tasks that outlived their workers, in runs that this process of tests began."""
    return [
        process for process in psutil.process_iter(["cmdline"]) if _ORPHAN_SECONDS in (process.info["cmdline"] or [])
    ]
