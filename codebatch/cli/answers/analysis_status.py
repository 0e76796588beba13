"""The status of an analysis, printed as text or as JSON."""

from __future__ import annotations

from codebatch.cli.framework.context import CommandContext
from codebatch.cli.output.tables import table_lines
from codebatch.model.text.quantities import percentage_of
from codebatch.operations.queries.batch_status import status_answer
from codebatch.operations.queries.batches import read_batch_status
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir


def answer_analysis_status(context: CommandContext, store: StoreDir, batch: BatchDir, name: str = "status") -> bool:
    """Print the status of an analysis. Return whether the analysis is stalled: work is left but no process does it.

    `name` is as in `CommandContext.print`.
    """
    status = read_batch_status(store, batch)
    answer, tally = status_answer(store, status), status.standing.tally
    lines = [
        f"batch     {answer.batch_id}",
        f"snapshot  {answer.snapshot_id}",
        f"pipeline  {answer.pipeline}",
        *([f"paths     {', '.join(answer.paths)}"] if answer.paths else []),
        f"status    {answer.status}{' (interrupted: no process runs it)' if answer.stalled else ''}",
        f"progress  {percentage_of(tally.planned - tally.open_count, tally.planned)}% of {tally.planned:,} results",
        *(f"running   {h.role} {h.holder} pid {h.pid} on {h.host} since {h.since}" for h in answer.holders),
        *table_lines(
            ((t.task_id, t.status, t.files_done, t.files_failed, t.files_total) for t in answer.tasks),
            ("task", "status", "done", "failed", "files"),
        ),
    ]
    context.print(answer, lines, name=name)
    for omission in answer.omissions:
        context.report(omission.text)
    return answer.stalled
