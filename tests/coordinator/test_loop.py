"""What the coordinator learns from the disk, beside another that works on the same batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from codebatch.coordinator.costs import estimate
from codebatch.coordinator.limits import Limits
from codebatch.coordinator.loop import Coordinator, Scope
from codebatch.coordinator.process_crew import ProcessCrew
from codebatch.engine.events import Fail
from codebatch.model.outcome import HolderId, Register
from codebatch.model.plan import items_of
from codebatch.protocol.record_frames import FrameWriter
from codebatch.store import layout
from codebatch.store.batches import Batch
from codebatch.store.holders import HolderFile, new_holder_id
from codebatch.store.outcomes import Committer, failed_outcome
from codebatch.store.snapshots import load_snapshot
from codebatch.store.store import create_store
from codebatch.system.files import RealFiles
from codebatch.system.host import this_host
from tests.proof.plans import make_batch

OTHER = HolderId("f" * 32)


class _Bench:
    """A coordinator that was set up, and has not begun."""

    def __init__(self, root: Path) -> None:
        store, _ = create_store(RealFiles(), root / "store")
        self.batch: Batch = make_batch(store, [b"a", b"b"], shard_items=2)
        plan = self.batch.plan()
        self.shard = plan.shards[0].id
        about = HolderFile(holder=new_holder_id(), role="coordinator", pid=1, host=this_host(), since_ns=1)
        items = items_of(load_snapshot(store.files, store.root, plan.snapshot_id).entries)
        crew = ProcessCrew(
            self.batch,
            store_root=str(store.root),
            coordinator=about.holder,
            own_places={},
            limits=Limits(file_seconds=1.0, project_seconds=1.0, memory_bytes=1 << 30),
            running_ns=lambda: 0,
        )
        self.coordinator = Coordinator(
            self.batch,
            plan,
            items,
            crew,
            about=about,
            jobs=1,
            costs=estimate(plan, items, None),
            cost_per_worker=1.0,
            scope=Scope(),
            watcher=None,
            wall_ns=lambda: 0,
        )


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[_Bench]:
    made = _Bench(tmp_path)
    yield made
    made.coordinator.close()


def test_a_failure_that_another_committed_first_is_learnt(bench: _Bench) -> None:
    """Else the item counts as being failed here for ever, and the run never ends."""
    register = Register(bench.shard, 0, "parse", 1)
    failed = failed_outcome(b"a", register, "timeout", FrameWriter())
    Committer(bench.batch.files, bench.batch.root, OTHER).commit([failed], epoch=0, round_=1)
    assert not bench.coordinator.ledger.knows(register)
    bench.coordinator._fail(Fail(bench.shard, 0, ("parse",), 1, "crash"))
    (link,) = bench.coordinator.ledger.walk(bench.shard, "parse")
    assert (link.segment, link.outcome.reason) == (OTHER, "timeout")


def test_a_register_that_cannot_be_read_is_taken_and_its_work_open_one_round_up(bench: _Bench) -> None:
    register = Register(bench.shard, 0, "parse", 1)
    (bench.batch.root / layout.OUTCOMES / layout.register_name(register)).write_bytes(b"torn")
    bench.coordinator._learn()
    rounds = {unit.tasks: unit.round for unit in bench.coordinator.ledger.open_units(bench.shard)}
    assert rounds == {("symbols", "lint"): 1, ("parse",): 2}
