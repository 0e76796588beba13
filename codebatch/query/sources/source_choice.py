"""The choice of where the records of a batch are read from."""

from __future__ import annotations

from collections.abc import Callable

from codebatch.model.plan import Plan
from codebatch.query.sources.sources import MergedSource, Narrow, RecordSource
from codebatch.store.batches.batches import BatchDir
from codebatch.store.results.outputs import current_outputs, outputs_if_settled_since


def find_source(batch: BatchDir, plan: Callable[[], Plan], narrow: Narrow | None = None) -> RecordSource:
    """What to read a batch from. `plan` gives its plan, and is asked where a question needs it. Raises StoreCorrupt."""
    outputs = current_outputs(batch)
    if outputs is not None:
        return MergedSource(outputs, plan, narrow)

    def look_again() -> MergedSource | None:
        settled = outputs_if_settled_since(batch)
        return None if settled is None else MergedSource(settled, plan, narrow)

    from codebatch.query.sources.unmerged import LiveSource  # 2 ms, with all that merging rests on
    from codebatch.store.results.outcomes import Outcomes

    unmerged = LiveSource(Outcomes(batch.files, batch.root), plan, look_again)
    unmerged.look()
    return look_again() or unmerged
