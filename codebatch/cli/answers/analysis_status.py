"""The status of an analysis: the answer of `status`."""

from __future__ import annotations

import msgspec

from codebatch.cli.answers.holders import HolderRow, holder_row
from codebatch.cli.framework.context import CommandContext
from codebatch.cli.output.tables import table_lines
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import percentage_of
from codebatch.operations.queries import batches
from codebatch.operations.queries.batch_query import displayed_restriction
from codebatch.operations.queries.batches import TaskStatus
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir


class StatusAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch status` for an analysis.

    - `planned`: the number of results that a complete batch has.
    - `results`: the number of results that exist.
    - `failed`: the number of results that could not be produced.
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


def answer_analysis_status(context: CommandContext, store: StoreDir, batch: BatchDir, name: str = "status") -> bool:
    """Print the status of an analysis. Return whether the analysis is stalled: work is left but no process does it.

    `name` is as in `CommandContext.print`.
    """
    analysis = batches.read_batch_status(store, batch)
    state, rows = analysis.standing, analysis.tasks
    holders = tuple(map(holder_row, state.holders))
    tally = state.tally
    lines = [
        f"batch     {batch.id}",
        f"snapshot  {batch.about.snapshot_id}",
        f"pipeline  {batch.about.pipeline}",
        *([f"paths     {', '.join(displayed_restriction(batch))}"] if batch.about.paths else []),
        f"status    {state.state.value}{' (stalled: no process is running it)' if state.is_stalled else ''}",
        f"progress  {percentage_of(tally.planned - tally.open_count, tally.planned)}% of {tally.planned:,} results",
        *(f"running   {h.role} {h.holder} pid {h.pid} on {h.host} since {h.since}" for h in holders),
        *table_lines(
            ((r.task_id, r.status, r.files_done, r.files_failed, r.files_total) for r in rows),
            ("task", "status", "done", "failed", "files"),
        ),
    ]
    context.print(
        StatusAnswer(
            batch_id=batch.id,
            project=display_path(batch.about.project_root),
            snapshot_id=batch.about.snapshot_id,
            pipeline=batch.about.pipeline,
            paths=displayed_restriction(batch),
            status=state.state.value,
            stalled=state.is_stalled,
            result_digest=state.outputs.manifest.result_digest if state.outputs and state.state.is_final else None,
            planned=tally.planned,
            results=tally.results,
            failed=tally.failed,
            total_shards=sum(row.shards_total for row in rows),
            done_shards=sum(row.shards_done for row in rows),
            failed_shards=sum(row.shards_failed for row in rows),
            holders=holders,
            tasks=rows,
        ),
        lines,
        name=name,
    )
    return state.is_stalled
