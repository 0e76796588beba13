"""The status of an analysis as a document: the answer of `status`."""

from __future__ import annotations

import msgspec

from codebatch.model.entry import display_path
from codebatch.operations.queries.batch_query import displayed_restriction
from codebatch.operations.queries.batches import BatchStatus, TaskStatus, read_batch_status
from codebatch.query.answers.omissions import OmissionSummary, read_omissions
from codebatch.query.sources.records import BatchRecords
from codebatch.query.status.holder_rows import HolderRow, holder_row
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir


class StatusAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch status` for an analysis.

    - `planned`: the number of results that a complete batch has.
    - `results`: the number of results that exist.
    - `failed`: the number of results that could not be produced.
    - `omissions`: for tasks that call a program, the parts of its output that are in no finding.
    """

    batch_id: str
    project: str
    snapshot_id: str
    pipeline: str
    paths: tuple[str, ...]
    status: str
    stalled: bool
    result_digest: str | None
    planned: int
    results: int
    failed: int
    total_shards: int
    done_shards: int
    failed_shards: int
    holders: tuple[HolderRow, ...]
    tasks: tuple[TaskStatus, ...]
    omissions: tuple[OmissionSummary, ...]


def make_status_answer(store: StoreDir, batch: BatchDir) -> StatusAnswer:
    """Read the status of an analysis, and return it as a document. Raises StoreCorrupt."""
    return status_answer(store, read_batch_status(store, batch))


def status_answer(store: StoreDir, status: BatchStatus) -> StatusAnswer:
    """Return a status of an analysis as a document."""
    batch, state, tasks = status.batch, status.standing, status.tasks
    records = BatchRecords(store, batch)
    return StatusAnswer(
        batch_id=batch.id,
        project=display_path(batch.about.project_root),
        snapshot_id=batch.about.snapshot_id,
        pipeline=batch.about.pipeline,
        paths=displayed_restriction(batch),
        status=state.state.value,
        stalled=state.is_stalled,
        result_digest=state.outputs.manifest.result_digest if state.outputs and state.state.is_final else None,
        planned=state.tally.planned,
        results=state.tally.results,
        failed=state.tally.failed,
        total_shards=sum(task.shards_total for task in tasks),
        done_shards=sum(task.shards_done for task in tasks),
        failed_shards=sum(task.shards_failed for task in tasks),
        holders=tuple(map(holder_row, state.holders)),
        tasks=tasks,
        omissions=read_omissions(records, records.task_names),
    )
