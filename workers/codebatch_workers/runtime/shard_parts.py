"""The parts of a project task's outcome, one for each shard.

A part is either new, or the part of an older batch with the records of some files replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from codebatch.model.analysis.record_counting import count_lines, count_records
from codebatch.model.outcome import TaskOutcome
from codebatch.model.record_counts import RecordCounts
from codebatch.model.shard import Shard
from codebatch.protocol.record_frames import FrameWriter
from codebatch.store.results.bases import ShardPlace
from codebatch.store.results.outcomes import EncodedOutcome, encode_outcome
from codebatch_workers.runtime.previous_batch import PreviousBatch
from codebatch_workers.runtime.results import NO_RECORDS, EncodedRecords, ReusedRecords

ShardAdopter: TypeAlias = "Callable[[Shard, str, ShardPlace], EncodedOutcome | None]"
"""A function that links a shard file of an older batch into the results of this batch, so that it is not written again.

It returns the part of the outcome for this file, or None if the file cannot be used.
"""


def adopt_no_shard(_shard: Shard, _task: str, _place: ShardPlace) -> None:
    """Return None. This function is used if there is no directory of results into which a file can be linked."""


TermsKeeper = Callable[[EncodedOutcome, Sequence[EncodedRecords | ReusedRecords]], None]
"""A function that stores the index terms of an outcome. Its arguments are the outcome, and the results of its items."""


def keep_no_terms(_encoded: EncodedOutcome, _said: Sequence[EncodedRecords | ReusedRecords]) -> None:
    """Store nothing. This function is used if no index is wanted."""


def make_shard_part(
    task: str,
    shard: Shard,
    results: Mapping[int, EncodedRecords],
    frames: FrameWriter,
    uncovered_inputs: str,
    keep: TermsKeeper,
) -> EncodedOutcome:
    """Return the part of the outcome for one shard. `results` maps items to records; other items have no records.

    `uncovered_inputs` describes inputs that the cache key does not cover, as in `TaskOutcome`.
    """
    shard_results = [results.get(item, NO_RECORDS) for item in range(shard.start, shard.end)]
    counts = count_records([result.records for result in shard_results], [result.types for result in shard_results])
    encoded = encode_outcome(
        _part_outcome(task, shard, counts, uncovered_inputs), [result.lines for result in shard_results], frames
    )
    keep(encoded, shard_results)
    return encoded


def update_shard_part(
    task: str,
    shard: Shard,
    results: Mapping[int, EncodedRecords],
    frames: FrameWriter,
    before: PreviousBatch,
    adopt: ShardAdopter,
    keep: TermsKeeper,
) -> EncodedOutcome:
    """Return the part of the outcome for one shard, updated from an older batch. Raises StoreError.

    Items in `results` get their new result. All other items keep their result in the older batch. If no result differs,
    the shard file of the older batch is linked instead, provided that it is intact.
    """
    new = {item - shard.start: results[item].lines for item in range(shard.start, shard.end) if item in results}
    lines = before.previous_lines(shard.start, shard.end) if new else []
    file = before.shard_file(shard)
    if file is not None and all(lines[index] == item_lines for index, item_lines in new.items()):
        adopted = adopt(shard, task, file)
        if adopted is not None:
            return adopted
    if not new:
        lines = before.previous_lines(shard.start, shard.end)
    for index, item_lines in new.items():
        lines[index] = item_lines
    encoded = encode_outcome(_part_outcome(task, shard, count_lines(b"".join(lines))), lines, frames)
    keep(encoded, list(map(ReusedRecords, lines)))
    return encoded


def _part_outcome(task: str, shard: Shard, counts: RecordCounts, uncovered_inputs: str = "") -> TaskOutcome:
    return TaskOutcome(
        shard=shard.id,
        task=task,
        start=0,
        end=shard.items,
        type="result",
        counts=counts,
        inputs_outside_key=uncovered_inputs,
    )
