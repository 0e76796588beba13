"""SPEC.md is complete: a reader written from its text alone (spec_reader.py) agrees with the product on batches."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import psutil
import pytest

from codebatch.model.digest import Digest
from codebatch.model.outcome import Commit, OutcomeRegister, TaskOutcome
from codebatch.model.shard import ShardId
from codebatch.protocol.record_frames import FrameWriter
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.store import layout
from codebatch.store.batches.batch_directory import batch_ids
from codebatch.store.batches.holders import LeaseReader, new_holder_id
from codebatch.store.batches.store_directory import create_store, open_store
from codebatch.store.results.ledgers import count_ledger_outcomes, load_ledger
from codebatch.store.results.outcomes import (
    EncodedOutcome,
    OutcomeCommitter,
    OutcomeRegisters,
    encode_outcome,
    failed_outcome,
    join_parts,
)
from codebatch.system.files.files import RealFiles
from codebatch.system.processes.progress_cell import ProgressCell
from tests import spec_reader
from tests.support.batches import make_batch
from tests.support.command_line import CommandLine, make_many, make_project, wait_until, write
from tests.support.invariants import merged
from tests.support.worker_processes import open_latest

RUN = ("run", "many", "--store", "store", "-j", "2", "-q")


def test_spec_reader_imports_only_standard_modules() -> None:
    tree = ast.parse(Path(spec_reader.__file__).read_text(encoding="utf-8"))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names | {"zstandard"}


class _ManualCommitter:
    """A batch of three shards of two files, in which the test commits outcomes itself."""

    def __init__(self, root: Path) -> None:
        store, _ = create_store(RealFiles(), root / "store")
        self.batch = make_batch(store, [b"a", b"b", b"c", b"d", b"e", b"f"], shard_items=2)
        self.plan = self.batch.plan()
        self._frames = FrameWriter()

    def encoded(self, task: str, shard: int, items: Sequence[bytes], start: int = 0) -> EncodedOutcome:
        name = self.plan.shards[shard].id
        outcome = TaskOutcome(shard=name, task=task, start=start, end=start + len(items), type="result")
        return encode_outcome(outcome, items, self._frames)

    def failed(self, task: str, shard: int, start: int) -> EncodedOutcome:
        return failed_outcome(
            b"f.py", OutcomeRegister(self.plan.shards[shard].id, start, task, 1), "crash", self._frames
        )

    def project(self, inputs: Digest) -> EncodedOutcome:
        parts = [self.encoded("graph", shard, [b"", b'{"kind":"edge"}\n']) for shard in range(3)]
        shard = ShardId("project-graph")
        outcome = TaskOutcome(shard=shard, task="graph", start=0, end=1, type="result", inputs=inputs)
        return join_parts(outcome, parts)

    def commit(self, *encoded: EncodedOutcome, round_: int = 1) -> Commit:
        committer = OutcomeCommitter(self.batch.files, self.batch.root, new_holder_id())
        try:
            return committer.commit_outcomes(encoded, epoch=1, round_=round_)
        finally:
            committer.close()


def test_spec_reader_agrees_on_races_rounds_holes_and_damage(tmp_path: Path) -> None:
    committer = _ManualCommitter(tmp_path)
    read = partial(spec_reader.Batch, tmp_path / "store", committer.batch.id)

    def tally() -> dict[str, tuple[int, int, int]]:
        """Compare both readers. Return the counts of the two tasks that have other outcomes than `parse`."""
        _compare(tmp_path / "store")
        return {task: counts for task, counts in read().tally().items() if task in ("symbols", "graph")}

    committer.commit(*(committer.encoded("parse", shard, [b"", b"b"]) for shard in range(3)))
    committer.commit(committer.encoded("symbols", 0, [b"one\n", b"two\n"]))
    beaten = committer.commit(
        committer.encoded("symbols", 0, [b"late\n"]), committer.encoded("symbols", 1, [b"six\n"], start=1)
    )
    assert len(beaten.outcomes) == 1
    assert tally() == {"symbols": (3, 0, 3), "graph": (0, 0, 1)}
    torn = committer.batch.root / layout.OUTCOMES / f"{committer.plan.shards[1].id}.0.symbols.r1"
    torn.write_bytes(b"{}\n")
    committer.commit(committer.encoded("symbols", 1, [b"five\n"]), round_=2)
    committer.commit(committer.failed("symbols", 2, 0), committer.encoded("symbols", 2, [b"six\n"], start=1))
    assert tally() == {"symbols": (5, 1, 0), "graph": (0, 0, 1)}
    committer.commit(committer.project(Digest(read().inputs("graph"))))
    assert tally()["graph"] == (1, 0, 0)
    committer.commit(committer.encoded("symbols", 2, [b"mended\n"]), round_=2)
    assert tally() == {"symbols": (6, 0, 0), "graph": (0, 0, 1)}
    mended = next(read().chain(committer.plan.shards[2].id, "symbols"))
    assert read().records(mended) == [b"mended\n"]
    segment = committer.batch.root / layout.RESULTS / f"{mended['segment']}.seg"
    segment.write_bytes(segment.read_bytes()[:-1] + b"?")
    with pytest.raises(spec_reader.Unsound, match="rows"):
        read().records(mended)


@pytest.mark.slow
def test_spec_reader_agrees_on_a_killed_and_a_finished_run(tmp_path: Path) -> None:
    make_project(make_many(tmp_path / "many", 40))
    rule = "[shard]\nfiles_average = 4\nfiles_min = 2\nfiles_max = 6\n[tasks.parse]\nemit_ast = true\n"
    (tmp_path / "codebatch.toml").write_text(rule, encoding="utf-8")
    codebatch = CommandLine(tmp_path)
    process = codebatch.start(*RUN)
    store = tmp_path / "store"
    wait_until(lambda: sum(1 for _ in store.glob(f"batches/batch-*/{layout.OUTCOMES}/*.parse.*")) > 3, "half a run")
    running = psutil.Process(process.pid)
    workers = running.children()
    try:
        for suspended in (running, *workers):
            suspended.suspend()
        (batch_id,) = spec_reader.batch_ids(store)
        assert all(spec_reader.Batch(store, batch_id).holders().values())
        _compare(store)
    finally:
        process.kill()
        process.communicate()
        psutil.wait_procs(workers)
    read = spec_reader.Batch(store, batch_id)
    assert len(read.holders()) > 1
    assert not any(read.holders().values())
    assert read.outputs() is None
    tally = read.tally().values()
    assert any(done for done, _, _ in tally)
    assert any(left for _, _, left in tally)
    _compare(store)
    codebatch(*RUN)
    _compare(store)
    _compare_outputs(store)
    write(tmp_path / "many" / "another.py", "import os\n")
    assert codebatch(*RUN, "--json").json["reused"] > 0
    _compare(store)
    _compare_outputs(store)


def _compare(store: Path) -> None:
    """Compare everything that both readers read from the latest batch."""
    batch = open_latest(store)
    assert spec_reader.batch_ids(store) == batch_ids(open_store(RealFiles(), store))
    read = spec_reader.Batch(store, batch.id)
    ledger = load_ledger(batch.plan(), OutcomeRegisters(batch.files, batch.root))
    assert read.tally() == {task: _counts(ledger, task) for task in batch.plan().task_names}
    outcomes = OutcomeRegisters(batch.files, batch.root)
    for shard, task in ledger.iter_chain_keys:
        links, outcomes_read = list(ledger.iter_links(shard, task)), list(read.chain(shard, task))
        read_ranges = [(outcome["start"], outcome["end"], outcome["type"]) for outcome in outcomes_read]
        assert read_ranges == [(link.start, link.end, link.type) for link in links]
        for link, outcome in zip(links, outcomes_read, strict=True):
            pieces = link.outcome.parts or (link.outcome,)
            records = (b"".join(outcomes.iter_items(link.segment, piece)) for piece in pieces)
            assert b"".join(read.records(outcome)) == b"".join(records)
    lease_reader = LeaseReader(batch.files, batch.root)
    assert read.holders() == {holder.holder: is_live for holder, is_live in lease_reader.read_holders()}
    for path in (batch.root / layout.HOLDERS).glob("*.cell"):
        cell = ProgressCell(batch.files, path, create=False)
        assert read.step(path.stem) == tuple(cell.read())
        cell.close()
    assert read.leases() == {unit: lease.holder.holder for unit, lease in lease_reader.read_leases().items()}


def _counts(ledger: OutcomeLedger, task: str) -> tuple[int, int, int]:
    tally = count_ledger_outcomes(ledger, (task,))
    return tally.results, tally.failed, tally.open_count


def _compare_outputs(store: Path) -> None:
    batch = open_latest(store)
    expected, read = merged(batch), spec_reader.Batch(store, batch.id)
    manifest = read.outputs()
    assert manifest is not None
    assert manifest["result_digest"] == expected.result_digest
    for task in manifest["tasks"]:
        name = task["task"]
        records = read.merged(manifest, task)
        assert len(records) == len(read.items) == manifest["items"]
        files = sorted(path for path in expected.files if path.startswith(f"{name}/"))
        assert b"".join(records) == spec_reader.unzstd(b"".join(expected.files[path] for path in files))
        shards = [f"project-{name}"] if task["scope"] == "project" else list(read.sizes)
        assert records == [
            records_of_item
            for shard in shards
            for outcome in read.chain(shard, name)
            for records_of_item in read.records(outcome)
        ]
    objects = open_store(RealFiles(), store).objects()
    for item in read.items:
        assert spec_reader.read_object(store, item["object"]) == objects.read(Digest(item["object"]), item["size"])
