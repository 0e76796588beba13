"""Power loss in a run that reuses results, settles batches and collects garbage, with the real tasks.

After any call of that run, every batch of the store can be read, and the next run has the bytes of a fresh run. This
holds for the synced data alone, and for any unsynced data that a disk may have kept. CODEBATCH_PROOF_PREFIXES is the
number of prefixes.
"""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from codebatch.store.batches.batch_directory import batch_ids, open_batch
from codebatch.store.batches.store_directory import StoreDir, open_store
from codebatch.store.results.outputs import current_outputs
from codebatch.store.snapshots.snapshots import load_snapshot
from codebatch.system.files.files import RealFiles
from codebatch.system.files.system_calls import RealCalls
from tests.support.command_line import write
from tests.support.disk import Disk
from tests.support.inline_workers import inline, run
from tests.support.invariants import Merged, merged
from tests.support.trace import TracedCall, TracedCalls, read_trace, replay

PREFIXES = int(os.environ.get("CODEBATCH_PROOF_PREFIXES", "12"))
SETTINGS = "[shard]\nfiles_average = 2\nfiles_min = 2\nfiles_max = 2\n[store]\nkeep = 1\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The calls of four runs and the outputs of a fresh run. The calls of the last run start at `begin`."""

    root: Path
    calls: list[TracedCall]
    begin: int
    expected: Merged


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    root = tmp_path_factory.mktemp("beside")
    tree, store = root / "tree", root / "new" / "store"
    write(tree / "codebatch.toml", SETTINGS)
    (root / "new").mkdir()
    for name in "abcde":
        write(tree / f"{name}.py", f"import {name}\n\n\ndef f(x=[]):\n    return x\n")
    with inline(TracedCalls(RealCalls(), root / "trace")):
        run(tree, store)
        write(tree / "a.py", "import os\n")
        run(tree, store, task="parse")
        write(tree / "b.py", "import sys\n")
        run(tree, store)
        begin = len(read_trace(root / "trace"))
        write(tree / "c.py", "import re\n")
        run(tree, store)
    with inline():
        expected = merged(run(tree, root / "fresh").batch)
    return Recorded(root=root, calls=read_trace(root / "trace"), begin=begin, expected=expected)


def _crashed(recorded: Recorded, length: int) -> Disk:
    """Return the disk after a number of calls, with all data, only synced data, or a random part of the rest."""
    disk = Disk()
    process = disk.calls()
    for directory in [*[*reversed(recorded.root.parents)][1:], recorded.root, recorded.root / "new"]:
        process.mkdir(directory)
    disk.sync()
    replay(disk, recorded.calls[:length])
    if length % 3:
        disk.lose_power(random.Random(length) if length % 3 == 1 else None)
    return disk


def _check_every_batch(store: StoreDir) -> None:
    objects = store.objects()
    for batch_id in batch_ids(store):
        batch = open_batch(store, batch_id)
        for entry in load_snapshot(store.files, store.root, batch.about.snapshot_id).entries:
            objects.read(entry.object, entry.size)
        if current_outputs(batch) is not None:
            merged(batch)


def test_reusing_run_recovers_from_power_loss_after_any_call(recorded: Recorded, tmp_path: Path) -> None:
    calls = len(recorded.calls) - recorded.begin
    assert {call.call for call in recorded.calls[recorded.begin :]} >= {"link", "remove_tree", "rename", "fsync"}
    for part in range(min(PREFIXES, calls) + 1):
        length = recorded.begin + round(part * calls / min(PREFIXES, calls))
        shutil.rmtree(tmp_path / "new", ignore_errors=True)
        _crashed(recorded, length).export(recorded.root / "new", tmp_path / "new")
        _check_every_batch(open_store(RealFiles(), tmp_path / "new" / "store"))
        with inline():
            ran = run(recorded.root / "tree", tmp_path / "new" / "store")
        assert merged(ran.batch) == recorded.expected, f"after {length - recorded.begin} of {calls} calls"
        _check_every_batch(ran.store)
