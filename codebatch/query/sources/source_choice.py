"""Choice of the source of the records of a batch."""

from __future__ import annotations

from collections.abc import Callable

from codebatch.model.plan import Plan
from codebatch.query.sources.sources import FrameNarrower, MergedSource, RecordSource
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.results.outputs import current_outputs, outputs_if_settled_since


def find_source(batch: BatchDir, plan: Callable[[], Plan], narrow: FrameNarrower | None = None) -> RecordSource:
    """Return the source of the records of a batch: its merged outputs if they exist, otherwise its outcomes.

    `plan` reads the plan. It is called only if needed. Raises StoreCorrupt.
    """
    outputs = current_outputs(batch)
    if outputs is not None:
        return MergedSource(outputs, plan, narrow)

    def read_settled() -> MergedSource | None:
        settled = outputs_if_settled_since(batch)
        return None if settled is None else MergedSource(settled, plan, narrow)

    # Imported here because it imports the code for merging, which merged batches do not need.
    from codebatch.query.sources.unmerged import LiveSource
    from codebatch.store.results.outcomes import OutcomeRegisters

    unmerged = LiveSource(OutcomeRegisters(batch.files, batch.root), plan, read_settled)
    unmerged.scan_registers()
    return read_settled() or unmerged
