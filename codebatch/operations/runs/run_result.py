"""Results of runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from codebatch.coordinator.analysis.execution import RunOutcome
from codebatch.errors import BatchCancelled, BatchIncomplete
from codebatch.model.shard import ShardId
from codebatch.model.text.quantities import count_text
from codebatch.operations.runs.execution import RunAction
from codebatch.operations.runs.headline import Headline
from codebatch.query.answers.omissions import OmissionSummary
from codebatch.query.answers.summary import Summary
from codebatch.query.filters.filters import JsonRecord
from codebatch.query.status.batch_status import CurrentState
from codebatch.scheduling.lifecycle import BatchState
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run.

    - `headline`: the most important results.
    - `failures`: the first failures.
    - `missing_grammars`: for each language without an installed grammar, the number of files that were not parsed.
    - `executed`: the number of results that this run produced, and the number that it reused. Both are 0 if nothing was
      left to do. `executed.signal_status` is the exit status of the signal that ended the run early, otherwise 0.
    - `omissions`: for tasks that call a program, the parts of its output that are in no finding.
    - `tasks_without_files`: maps tasks that call a program to the reason why they checked no file.
    - `inputs_outside_key`: maps tasks to inputs that their cache key does not cover. Other batches do not reuse
      the results of these tasks.
    - `task`: the name of the task if the run was restricted to one task, otherwise None.
    - `name`: the name given to the batch.
    - `name_was`: the ID of the batch that had this name before.

    Example:

        ran = codebatch.run(".")
        print(ran.is_complete, ran.headline.bugs_count)
    """

    store: StoreDir
    batch: BatchDir
    action: RunAction
    seconds: float
    standing: CurrentState
    summary: Summary
    headline: Headline
    failures: tuple[JsonRecord, ...]
    missing_grammars: Mapping[str, int]
    executed: RunOutcome
    inputs_outside_key: Mapping[str, str]
    omissions: tuple[OmissionSummary, ...]
    tasks_without_files: Mapping[str, str]
    task: str | None
    name: str | None = None
    name_was: str | None = None

    @property
    def result_digest(self) -> str | None:
        """The digest of all results; None before the batch has ended."""
        state = self.standing
        return state.outputs.manifest.result_digest if state.outputs and state.state.is_final else None

    @property
    def is_complete(self) -> bool:
        """Whether every planned result exists."""
        return self.standing.state is BatchState.COMPLETED

    @property
    def shortfall(self) -> BatchIncomplete | None:
        """The error that describes what is missing.

        None if nothing is missing, or if the run was restricted to one task.
        """
        tally, batch = self.standing.tally, self.batch
        if not self.standing.state.is_final:
            if self.task is not None:
                return None
            return BatchIncomplete(
                f"{tally.open_count:,} of {tally.planned:,} results are missing",
                hint=f"resume with: codebatch resume --batch {batch.id}",
            )
        if self.is_complete:
            return None
        if self.standing.state is BatchState.CANCELLED and tally.open_count:
            return cancelled_error(batch)
        hint = f"see: codebatch errors --batch {batch.id}; retry them with: codebatch resume --batch {batch.id}"
        if any(record["reason"] == "object" for record in self.failures):
            hint += "; restore content that is missing from the store with: codebatch snapshot PATH"
        failed = f"{tally.failed + tally.cancelled:,} of {count_text(tally.planned, 'result')} failed"
        return BatchIncomplete(failed, hint=hint)


def cancelled_error(batch: BatchDir) -> BatchCancelled:
    """Return the error for a cancelled batch."""
    return BatchCancelled(
        f"batch {batch.id} was cancelled", hint=f"resume it with: codebatch resume --batch {batch.id}"
    )


class ShardRunResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of running one task for some shards.

    `states` maps each finished shard to `done` or `failed`. `open` are the shards that are still open.
    """

    states: Mapping[ShardId, Literal["done", "failed"]]
    open: tuple[ShardId, ...]
    signal_status: int = 0
