"""What a project task says of each shard of files: what it made, and what of an older batch stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from codebatch.model.analysis.record_counting import count_lines, count_records
from codebatch.model.outcome import Outcome
from codebatch.model.record_counts import Counts
from codebatch.model.shard import Shard
from codebatch.protocol.record_frames import FrameWriter
from codebatch.store.results.outcomes import EncodedOutcome, encode_outcome
from codebatch_workers.runtime.previous_batch import BatchBefore
from codebatch_workers.runtime.results import NOTHING_SAID, EncodedRecords, ReusedRecords

if TYPE_CHECKING:
    from codebatch.store.results.bases import ShardPlace

Adopt: TypeAlias = "Callable[[Shard, str, ShardPlace], EncodedOutcome | None]"
"""Gives a shard file of an older batch a name among the results of this one; None where it is not what it was."""


def adopt_none(_shard: Shard, _task: str, _place: ShardPlace) -> None:
    """Where there are no results to give a name among."""


Keep = Callable[[EncodedOutcome, Sequence[EncodedRecords | ReusedRecords]], None]
"""Keeps for the index what an outcome posts, by what it is made of."""


def keep_nothing(_encoded: EncodedOutcome, _said: Sequence[EncodedRecords | ReusedRecords]) -> None:
    """Where no index is to be made."""


def made_part(
    task: str, shard: Shard, said: Mapping[int, EncodedRecords], frames: FrameWriter, unkeyed: str, keep: Keep
) -> EncodedOutcome:
    """The part of a shard where nothing but this is said of files; by their items. `unkeyed` is as in `Outcome`."""
    each = [said.get(item, NOTHING_SAID) for item in range(shard.start, shard.end)]
    counts = count_records([one.records for one in each], [one.types for one in each])
    encoded = encode_outcome(_outcome(task, shard, counts, unkeyed), [one.lines for one in each], frames)
    keep(encoded, each)
    return encoded


def updated_part(
    task: str,
    shard: Shard,
    said: Mapping[int, EncodedRecords],
    frames: FrameWriter,
    before: BatchBefore,
    adopt: Adopt,
    keep: Keep,
) -> EncodedOutcome:
    """The part of a shard where of every other file what was said before stands. Raises StoreError."""
    new = {item - shard.start: said[item].lines for item in range(shard.start, shard.end) if item in said}
    lines = before.lines(shard.start, shard.end) if new else []
    file = before.file(shard)
    if file is not None and all(lines[place] == each for place, each in new.items()):
        adopted = adopt(shard, task, file)
        if adopted is not None:
            return adopted
    if not new:
        lines = before.lines(shard.start, shard.end)
    for place, each in new.items():
        lines[place] = each
    encoded = encode_outcome(_outcome(task, shard, count_lines(b"".join(lines))), lines, frames)
    keep(encoded, list(map(ReusedRecords, lines)))
    return encoded


def _outcome(task: str, shard: Shard, counts: Counts, unkeyed: str = "") -> Outcome:
    return Outcome(
        shard=shard.id, task=task, start=0, end=shard.items, type="result", counts=counts, inputs_outside_key=unkeyed
    )
