"""The state of an analysis, derived from the files of its batch."""

from __future__ import annotations

import msgspec

from codebatch.scheduling.lifecycle import BatchState, batch_state, is_stalled
from codebatch.scheduling.outcome_counts import OutcomeCounts
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.holders import HolderFile, LeaseReader
from codebatch.store.results.ledgers import count_ledger_outcomes, load_ledger
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.results.outputs import MergedOutputs, current_outputs, outputs_if_settled_since
from codebatch.store.work.requests import is_cancelled


class CurrentState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a batch, the counts from which it is derived, and the processes that work on the batch."""

    state: BatchState
    tally: OutcomeCounts
    holders: tuple[HolderFile, ...]
    outputs: MergedOutputs | None

    @property
    def is_settled_and_merged(self) -> bool:
        """Whether no work is left and the outputs are merged, so that `run` has nothing to do."""
        return self.state.is_final and self.outputs is not None

    @property
    def is_stalled(self) -> bool:
        """Whether work is left but no process works on it."""
        return is_stalled(self.state, live_holders=len(self.holders))


def read_current_state(batch: BatchDir) -> CurrentState:
    """Read the state of a batch from its merged outputs. Before the merge, read it from registers and requests.

    Raises StoreCorrupt.
    """
    holders = LeaseReader(batch.files, batch.root).read_holders()
    live = tuple(holder for holder, is_live in holders if is_live)
    outputs = current_outputs(batch)
    if outputs is not None and not live:
        return _as_merged(outputs)
    ledger = load_ledger(batch.plan(), OutcomeRegisters(batch.files, batch.root))
    if (settled := outputs_if_settled_since(batch)) is not None:
        return _as_merged(settled)
    tally = count_ledger_outcomes(ledger)
    state = batch_state(tally, is_started=bool(holders))
    if not state.is_final and not live and is_cancelled(batch.files, batch.root):
        state = BatchState.CANCELLED
    return CurrentState(state=state, tally=tally, holders=live, outputs=outputs)


def _as_merged(outputs: MergedOutputs) -> CurrentState:
    tally = outputs.manifest.count_outcomes()
    return CurrentState(state=batch_state(tally, is_started=True), tally=tally, holders=(), outputs=outputs)
