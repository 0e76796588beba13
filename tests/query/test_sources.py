"""Tests of record sources: merged and live outcomes give equal answers, and an unfinished batch has its results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from codebatch.coordinator.analysis.merge import merge_outputs
from codebatch.errors import StoreCorrupt
from codebatch.model.digest import Digest
from codebatch.model.outcome import OutcomeRegister, TaskOutcome
from codebatch.model.plan import Plan
from codebatch.model.record_counts import RecordCounts
from codebatch.model.shard import ProjectWork
from codebatch.operations.queries.batches import task_states
from codebatch.protocol.record_frames import FrameWriter
from codebatch.query.filters.filters import decode_records
from codebatch.query.sources.source_choice import find_source
from codebatch.query.sources.sources import MergedSource, RecordSource
from codebatch.query.sources.unmerged import LiveSource
from codebatch.scheduling.outcome_counts import OutcomeCounts
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.holders import new_holder_id
from codebatch.store.batches.store_directory import create_store, open_store
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import (
    EncodedOutcome,
    OutcomeCommitter,
    OutcomeRegisters,
    encode_outcome,
    failed_outcome,
    join_parts,
)
from codebatch.system.files.files import RealFiles
from tests.support.batches import FILE_TASKS, PROJECT, make_batch

PATHS = [b"a", b"b", b"c", b"d", b"e"]
FAILED = 3
"""The item for which `lint` failed: the second of the second shard."""


@pytest.fixture
def batch(tmp_path: Path) -> BatchDir:
    """A batch of five items in three shards, with its file tasks done."""
    store, _ = create_store(RealFiles(), tmp_path / "store")
    batch = make_batch(store, PATHS, shard_items=2)
    committer = OutcomeCommitter(batch.files, batch.root, new_holder_id())
    committer.commit_outcomes(list(_commit_file_tasks(batch.plan())), epoch=1, round_=1)
    committer.close()
    return batch


@pytest.mark.parametrize(
    ("tasks", "files"),
    [(("parse",), 3), (("symbols",), 2), (("parse", "symbols"), 1), (("lint",), 0), (("graph",), 1), ((), 5)],
)
def test_files_done_of_a_running_batch_have_all_tasks_done(tmp_path: Path, tasks: tuple[str, ...], files: int) -> None:
    """`lint` needs `symbols`. `graph`, a project task, needs both."""
    store, _ = create_store(RealFiles(), tmp_path / "store")
    batch = make_batch(store, PATHS, shard_items=5)
    plan = batch.plan()
    committer = OutcomeCommitter(batch.files, batch.root, new_holder_id())
    done = [("parse", 0, 2), ("parse", 4, 5), ("symbols", 1, 3)]
    committer.commit_outcomes([_encoded(task, 0, start, end, plan) for task, start, end in done], epoch=1, round_=1)
    committer.close()
    assert find_source(batch, batch.plan).files_done(tasks) == files


def _commit_project(batch: BatchDir, task: str, inputs: Digest | None = None) -> None:
    committer = OutcomeCommitter(batch.files, batch.root, new_holder_id())
    plan = batch.plan()
    inputs = inputs or load_ledger(plan, OutcomeRegisters(batch.files, batch.root)).inputs_digest(task)
    whole = TaskOutcome(shard=ProjectWork(task).id, task=task, start=0, end=1, type="result", inputs=inputs)
    parts = [_encoded(task, shard.start, shard.start, shard.end, plan) for shard in plan.shards]
    committer.commit_outcomes([join_parts(whole, parts)], epoch=1, round_=1)
    committer.close()


def _merged(batch: BatchDir) -> RecordSource:
    plan = batch.plan()
    for task in PROJECT:
        _commit_project(batch, task)
    merge_outputs(batch, plan, load_ledger(plan, OutcomeRegisters(batch.files, batch.root)))
    return find_source(batch, batch.plan)


def _commit_file_tasks(plan: Plan) -> Iterator[EncodedOutcome]:
    """Yield the outcomes of the file tasks. `parse` of the first shard is in two parts."""
    for task in FILE_TASKS:
        for shard in plan.shards:
            cuts = [shard.start + 1] if task == "parse" and not shard.start else []
            if task == "lint" and shard.start <= FAILED < shard.end:
                register = OutcomeRegister(shard.id, FAILED - shard.start, task, 1)
                yield failed_outcome(PATHS[FAILED], register, "exception", FrameWriter())
                cuts.append(FAILED)
            for start, end in zip([shard.start, *cuts], [*cuts, shard.end], strict=True):
                if not (task == "lint" and start == FAILED):
                    yield _encoded(task, shard.start, start, end, plan)


def _encoded(task: str, first: int, start: int, end: int, plan: Plan) -> EncodedOutcome:
    shard = next(shard for shard in plan.shards if shard.start == first)
    counts = RecordCounts(kinds={"metric": end - start})
    outcome = TaskOutcome(shard=shard.id, task=task, start=start - first, end=end - first, type="result", counts=counts)
    return encode_outcome(outcome, [_line(task, item) for item in range(start, end)], FrameWriter())


def _line(task: str, item: int) -> bytes:
    return b'{"kind":"metric","path":"%s","task":"%s"}\n' % (PATHS[item], task.encode())


def _describe_source(source: RecordSource) -> dict[str, object]:
    return {
        "tasks": source.task_names,
        "project": source.project_tasks,
        "tallies": [source.count_outcomes({task}) for task in source.task_names]
        + [source.count_outcomes(source.task_names)],
        "shards": [list(source.iter_shards(task)) for task in FILE_TASKS],
        "pieces": [
            [(piece.counts, b"".join(piece.read())) for piece in source.iter_pieces(task)] for task in source.task_names
        ],
        "items": [[source.item_lines(task, item) for item in range(len(PATHS))] for task in FILE_TASKS],
    }


def test_merged_and_live_sources_agree(batch: BatchDir) -> None:
    merged = _merged(batch)
    assert isinstance(merged, MergedSource)
    unmerged = LiveSource(OutcomeRegisters(batch.files, batch.root), batch.plan)
    assert _describe_source(merged) == _describe_source(unmerged)
    assert [merged.is_done, unmerged.is_done] == [False, False]
    assert merged.count_outcomes(("lint", "graph")) == OutcomeCounts(planned=6, results=5, failed=1)
    assert [shard.failed for shard in merged.iter_shards("lint")] == [0, 1, 0]


def test_sources_return_single_items(batch: BatchDir) -> None:
    for source in (find_source(batch, batch.plan), _merged(batch)):
        for task in ("parse", "symbols"):
            assert [source.item_lines(task, item) for item in range(5)] == [_line(task, item) for item in range(5)]
        ((failure,), (after,)) = (decode_records(source.item_lines("lint", item) or b"") for item in (FAILED, 4))
        assert (failure["kind"], failure["path"]) == ("failure", "d")
        assert after["path"] == "e"


def test_items_without_an_outcome_are_open(batch: BatchDir) -> None:
    for path in (batch.root / "outcomes").glob("*.symbols.r1"):
        if path.name.startswith(batch.plan().shards[1].id):
            path.unlink()
    source = find_source(batch, batch.plan)
    assert isinstance(source, LiveSource)
    assert [source.item_lines("symbols", item) is None for item in range(5)] == [False, False, True, True, False]
    assert [shard.items for shard in source.iter_shards("symbols")] == [2, 0, 1]
    assert source.count_outcomes(("symbols", "report")) == OutcomeCounts(planned=6, results=3)
    assert source.task_names == batch.plan().task_names


def test_task_states_report_the_progress_of_each_task(batch: BatchDir) -> None:
    store = open_store(RealFiles(), batch.root.parent.parent)

    def progress_of(task: str) -> tuple[str, int, int, int, int, int]:
        (row,) = (row for row in task_states(store, batch) if row.task_id == task)
        return row.status, row.files_done, row.files_failed, row.files_total, row.shards_done, row.shards_total

    assert progress_of("parse") == ("done", 5, 0, 5, 3, 3)
    assert progress_of("lint") == ("failed", 4, 1, 5, 3, 3)
    _commit_project(batch, "graph", Digest("0" * 64))
    assert progress_of("graph") == ("pending", 0, 0, 1, 0, 1), "an outcome with outdated inputs counts as done"
    for path in (batch.root / "outcomes").glob(f"{batch.plan().shards[1].id}.*.symbols.r1"):
        path.unlink()
    assert progress_of("symbols") == ("running", 3, 0, 5, 2, 3)


def test_unused_shard_is_not_read(batch: BatchDir) -> None:
    source = _merged(batch)
    for path in batch.root.glob("outputs/*/symbols/*.jsonl.zst"):
        path.write_bytes(b"")
    pieces = list(source.iter_pieces("symbols"))
    assert [piece.counts.kinds["metric"] for piece in pieces] == [2, 2, 1]
    with pytest.raises(StoreCorrupt, match="it is truncated"):
        next(pieces[0].read())
