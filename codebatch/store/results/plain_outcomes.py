"""The results of a batch as plain outcomes: the form in which they leave the store.

The outcomes of a shard and task depend only on the results. They do not depend on how the work was divided into units,
on what was reused, or on whether the batch is merged or settled.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, Protocol

import msgspec

from codebatch.model.analysis.item_table import item_lengths
from codebatch.model.analysis.record_counting import count_lines
from codebatch.model.digest import digest_bytes
from codebatch.model.outcome import TaskOutcome, first_uncovered_input
from codebatch.model.part import ExternalOutcome
from codebatch.model.plan import Plan
from codebatch.model.record import CommandReason, FailureReason
from codebatch.model.record_counts import RecordCounts, add_counts
from codebatch.model.shard import Shard
from codebatch.protocol.record_frames import FrameWriter
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.store.results.outcomes import OutcomeRegisters, encode_outcome
from codebatch.store.results.outputs import MergedOutputs


class _FailureLine(msgspec.Struct):
    """The members of a failure record from which its outcome is made."""

    kind: str
    task: str = ""
    reason: FailureReason | None = None


_line_decoder = msgspec.json.Decoder(_FailureLine)


class _ItemResult(msgspec.Struct, frozen=True):
    """The record lines of an item. If the task failed for it, `reason` is set."""

    records: bytes
    reason: FailureReason | CommandReason | None


class ShardTally(NamedTuple):
    """Numbers of items of a shard: those for which a task has no result or was cancelled, and those that failed."""

    missing: int
    failed: int


class PlainOutcomeSource(Protocol):
    """A batch whose results can be read as plain outcomes."""

    def count_items(self, shard: Shard, task: str) -> ShardTally:
        """Return the numbers of the items of a shard that have no result of a task."""

    def iter_outcomes(self, shard: Shard, task: str) -> Iterator[ExternalOutcome]:
        """Yield the outcomes of a task for a shard, in item order.

        Every item of the shard must have a result or a failure. Raises StoreCorrupt.
        """


class UnmergedOutcomes:
    """The outcomes of a batch, from its registers."""

    def __init__(self, outcomes: OutcomeRegisters, ledger: OutcomeLedger) -> None:
        self._outcomes = outcomes
        self._ledger = ledger
        self._frame_writer = FrameWriter()

    def count_items(self, shard: Shard, task: str) -> ShardTally:
        links = list(self._ledger.iter_links(shard.id, task))
        return ShardTally(
            missing=shard.items - sum(link.end - link.start for link in links if link.type in ("result", "failed")),
            failed=sum(link.type == "failed" for link in links),
        )

    def iter_outcomes(self, shard: Shard, task: str) -> Iterator[ExternalOutcome]:
        links = list(self._ledger.iter_links(shard.id, task))
        inputs = first_uncovered_input(link.outcome for link in links)
        if len(links) == 1 and links[0].type == "result":
            frames, table = self._outcomes.read_bytes(links[0].segment, links[0].outcome)
            yield _whole_shard(shard, task, frames, table, links[0].outcome.counts, inputs)
            return
        items = [
            _ItemResult(records, link.outcome.reason if link.type == "failed" else None)
            for link in links
            for records in self._outcomes.iter_items(link.segment, link.outcome)
        ]
        yield from _divide(shard, task, items, inputs, self._frame_writer)


class MergedOutcomes:
    """The outcomes of a batch, from its merged outputs."""

    def __init__(self, outputs: MergedOutputs, plan: Plan) -> None:
        self._outputs = outputs
        self._places = {shard.id: place for place, shard in enumerate(plan.shards)}
        self._frame_writer = FrameWriter()

    def count_items(self, shard: Shard, task: str) -> ShardTally:
        output = self._outputs.task_output(task).shards[self._places[shard.id]]
        return ShardTally(missing=output.cancelled, failed=output.failed)

    def iter_outcomes(self, shard: Shard, task: str) -> Iterator[ExternalOutcome]:
        output, place = self._outputs.task_output(task), self._places[shard.id]
        about = output.shards[place]
        if not about.failed:
            frames = self._outputs.verified_frames(output, place)
            table = self._outputs.trailer(output, place).table
            yield _whole_shard(shard, task, frames, table, about.counts, about.inputs_outside_key)
            return
        items = [
            _ItemResult(records, _failure_reason(records, task)) for records in self._outputs.iter_items(output, place)
        ]
        yield from _divide(shard, task, items, about.inputs_outside_key, self._frame_writer)


def _failure_reason(records: bytes, task: str) -> FailureReason | None:
    """Return the reason why a task failed for an item, or None if it did not fail."""
    if not records.startswith(b'{"kind":"failure"') or records.count(b"\n") != 1:
        return None
    line = _line_decoder.decode(records)
    return line.reason if line.task == task else None


def _whole_shard(
    shard: Shard, task: str, frames: bytes, table: bytes, counts: RecordCounts, inputs_outside_key: str
) -> ExternalOutcome:
    outcome = TaskOutcome(
        shard=shard.id,
        task=task,
        start=0,
        end=shard.items,
        type="result",
        length=len(frames),
        bytes=sum(item_lengths(table)),
        crc=zlib.crc32(frames),
        digest=digest_bytes(table),
        counts=add_counts((counts,)),
        inputs_outside_key=inputs_outside_key,
    )
    return ExternalOutcome(outcome=outcome, frames=frames, table=table)


def _divide(
    shard: Shard, task: str, items: Sequence[_ItemResult], inputs_outside_key: str, frame_writer: FrameWriter
) -> Iterator[ExternalOutcome]:
    """Yield one outcome for each failed item, and one for each range of items between them."""
    start = 0
    for reason, group in groupby(items, key=lambda item: item.reason):
        records = [item.records for item in group]
        runs = [records] if reason is None else [[item] for item in records]
        for run in runs:
            outcome = TaskOutcome(
                shard=shard.id,
                task=task,
                start=start,
                end=start + len(run),
                type="result" if reason is None else "failed",
                reason=reason,
                counts=count_lines(b"".join(run)),
                inputs_outside_key=inputs_outside_key if reason is None else "",
            )
            encoded = encode_outcome(outcome, run, frame_writer)
            yield ExternalOutcome(outcome=encoded.outcome, frames=encoded.frames, table=encoded.table)
            start += len(run)
