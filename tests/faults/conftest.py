"""A store with a batch that runs the tasks of a poisonous plugin over a generated tree, and a command line for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil
import pytest

from codebatch.coordinator.analysis.planning import make_plan, resolve_tasks
from codebatch.model.shard import ShardRule
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.entry_points import clear_package_caches
from codebatch.snapshotting.selection import SourceRules
from codebatch.snapshotting.snapshot import take_snapshot
from codebatch.store.batches.batch_directory import create_batch
from codebatch.store.batches.store_directory import create_store
from codebatch.store.snapshots.snapshots import load_snapshot
from codebatch.system.files.files import RealFiles
from tests.faults.plugin.venom import ORPHAN_SECONDS_FILE
from tests.support.command_line import CommandLine, write

PLUGIN = Path(__file__).parent / "plugin"
_ORPHAN_SECONDS = f"6{os.getpid()}"

Poisoned = Callable[..., CommandLine]


@pytest.fixture
def poisoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Poisoned]:
    """A function that creates a batch over files, given by name and content. `shard` is the average shard size.

    At the end of the test, orphaned processes are killed.
    """

    def make(files: Mapping[str, str], *, shard: int = 16) -> CommandLine:
        for name, content in files.items():
            write(tmp_path / "tree" / name, content)
        write(tmp_path / ORPHAN_SECONDS_FILE, _ORPHAN_SECONDS)
        _plan(tmp_path, ShardRule(files_average=shard, files_min=1, files_max=256))
        return CommandLine(tmp_path, {"HOME": str(tmp_path)}, plugins=PLUGIN)

    monkeypatch.syspath_prepend(PLUGIN)
    clear_package_caches()
    yield make
    clear_package_caches()
    for process in orphans():
        process.kill()


def _plan(directory: Path, rule: ShardRule) -> None:
    store, _ = create_store(RealFiles(), directory / "store")
    captured = take_snapshot(store.files, store.root, [directory / "tree"], SourceRules(), now=lambda: 0.0)
    snapshot = load_snapshot(store.files, store.root, captured.snapshot_id)
    catalogue = TaskCatalogue()
    tasks = resolve_tasks(catalogue, ("venom", "symptom"))
    create_batch(
        store, make_plan(catalogue, snapshot, "poison", tasks, rule), sources=(os.fsencode(directory),), at_ns=1
    )


def orphans() -> list[psutil.Process]:
    """Return the processes that outlived the workers that started them, in runs of this test process."""
    return [
        process for process in psutil.process_iter(["cmdline"]) if _ORPHAN_SECONDS in (process.info["cmdline"] or [])
    ]
