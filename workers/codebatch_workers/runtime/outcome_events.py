"""Conversion of outcomes to journal events."""

from __future__ import annotations

from codebatch.model.outcome import TaskOutcome
from codebatch.store.batches import journal


def outcome_event(
    outcome: TaskOutcome, round_: int, epoch: int, evidence: str | None
) -> journal.Committed | journal.Failed:
    """Return the journal event for an outcome that was just published."""
    if outcome.type == "result":
        return journal.Committed(
            shard=outcome.shard,
            start=outcome.start,
            end=outcome.end,
            round=round_,
            epoch=epoch,
            task=outcome.task,
            records=outcome.counts.records,
            evidence=evidence,
        )
    return journal.Failed(
        shard=outcome.shard,
        start=outcome.start,
        end=outcome.end,
        round=round_,
        epoch=epoch,
        task=outcome.task,
        reason=outcome.reason,
        records=outcome.counts.records,
        evidence=evidence,
    )
