"""Sources of the records of a batch: its merged outputs or, before the merge, the outcomes.

All sources of a batch return the same records in the same order. So callers do not need to know which source they use.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import Protocol

import msgspec

from codebatch.index.keys import TermLookup
from codebatch.model.plan import Plan
from codebatch.model.record_counts import RecordCounts
from codebatch.scheduling.outcome_counts import OutcomeCounts
from codebatch.store.results.outputs import (
    MergedOutputs,
    OutputShard,
    ReadFrameCounts,
    TaskOutput,
)


class ShardRecords(msgspec.Struct, frozen=True):
    """The records of a task in a shard.

    - `counts`: the counts of these records.
    - `read`: yields their lines in blocks of whole lines.
    - `uncovered_inputs`: describes inputs that the cache key does not cover, or is empty.
    - `frames`: the number of frames that are read if an index excluded others, otherwise None.
    """

    counts: RecordCounts
    read: Callable[[], Iterator[bytes]]
    uncovered_inputs: str
    frames: int | None = None


class PartialShardCounts(msgspec.Struct, frozen=True):
    """The progress of a task in a shard.

    `items` is the number of items with an outcome, `failed` the number of failures among them. `counts` are the counts
    of their records.
    """

    items: int
    failed: int
    counts: RecordCounts


class RecordSource(Protocol):
    """The interface to the records of a batch. A task argument must be one of `task_names`.

    Methods that read records raise StoreCorrupt if records are damaged.
    """

    @property
    def description(self) -> str:
        """A description of the files that the records are read from, for display."""

    @property
    def outputs(self) -> MergedOutputs | None:
        """The merged outputs, or None before the merge."""

    @property
    def task_names(self) -> tuple[str, ...]:
        """The tasks of the batch, in plan order."""

    @property
    def project_tasks(self) -> tuple[str, ...]:
        """The tasks of project scope."""

    @property
    def is_done(self) -> bool:
        """Whether every task has a result for every item.

        Also false if the files of the batch would have to be scanned to know this.
        """

    @property
    def frames_read(self) -> ReadFrameCounts:
        """The amount of data that was read so far. Frames are counted only for merged outputs."""

    def count_outcomes(self, tasks: Collection[str]) -> OutcomeCounts:
        """Count the outcomes of some tasks by type."""

    def files_done(self, tasks: Collection[str]) -> int | None:
        """Return the number of files for which the given tasks, and all tasks that they need, have ended.

        Return None if the batch is merged.
        """

    def iter_shards(self, task: str) -> Iterator[PartialShardCounts]:
        """Yield the progress of a file task in each shard, in path order."""

    def iter_pieces(self, task: str, lookups: Sequence[TermLookup] = ()) -> Iterator[ShardRecords]:
        """Yield the records of a task, shard by shard in path order. A shard is read only when its `read` is called.

        With `lookups` and an index that lists the matching frames, frames that match none of the lookups may be left
        out.
        """

    def item_lines(self, task: str, item: int) -> bytes | None:
        """Return the record lines of an item, or None if the task has no outcome for it yet."""


FrameNarrower = Callable[[TaskOutput, Sequence[TermLookup]], Sequence[Sequence[int] | None]]
"""A function that returns for each shard of a task the frames to read, in ascending order.

A frame must be read if it can contain a record that matches one of the lookups. None stands for all frames of the
shard.
"""


class EmptySource:
    """A source without records, for a tree on which no task has run."""

    def __init__(self, description: str) -> None:
        self.description = description
        self.outputs: MergedOutputs | None = None
        self.task_names: tuple[str, ...] = ()
        self.project_tasks: tuple[str, ...] = ()
        self.is_done = True
        self.frames_read = ReadFrameCounts()

    def count_outcomes(self, tasks: Collection[str]) -> OutcomeCounts:
        return OutcomeCounts(planned=0)

    def files_done(self, tasks: Collection[str]) -> int | None:
        return None

    def iter_shards(self, task: str) -> Iterator[PartialShardCounts]:
        return iter(())

    def iter_pieces(self, task: str, lookups: Sequence[TermLookup] = ()) -> Iterator[ShardRecords]:
        return iter(())

    def item_lines(self, task: str, item: int) -> bytes | None:
        return None


class MergedSource:
    """A source that reads merged outputs."""

    def __init__(self, outputs: MergedOutputs, plan: Callable[[], Plan], narrow: FrameNarrower | None = None) -> None:
        self._outputs = outputs
        self._manifest = outputs.manifest
        self._plan = plan
        self._narrow = narrow

    @property
    def description(self) -> str:
        return str(self._outputs.root)

    @property
    def outputs(self) -> MergedOutputs:
        return self._outputs

    @property
    def task_names(self) -> tuple[str, ...]:
        return tuple(task.task for task in self._manifest.tasks)

    @property
    def project_tasks(self) -> tuple[str, ...]:
        return tuple(task.task for task in self._manifest.tasks if task.scope == "project")

    @property
    def is_done(self) -> bool:
        return not any(task.failed + task.cancelled for task in self._manifest.tasks)

    @property
    def frames_read(self) -> ReadFrameCounts:
        return self._outputs.read

    def count_outcomes(self, tasks: Collection[str]) -> OutcomeCounts:
        return self._manifest.count_outcomes(tasks)

    def files_done(self, tasks: Collection[str]) -> None:
        return None

    def iter_shards(self, task: str) -> Iterator[PartialShardCounts]:
        for planned, shard in zip(self._plan().shards, self._task_output(task).shards, strict=False):
            yield PartialShardCounts(planned.items, shard.failed, shard.counts)

    def iter_pieces(self, task: str, lookups: Sequence[TermLookup] = ()) -> Iterator[ShardRecords]:
        output = self._task_output(task)
        narrowed: Sequence[Sequence[int] | None] = ()
        if lookups and self._narrow is not None:
            narrowed = self._narrow(output, lookups)
        pieces = zip_longest(enumerate(output.shards), narrowed)
        return (self._make_piece(output, index, shard, frames) for (index, shard), frames in pieces)

    def item_lines(self, task: str, item: int) -> bytes:
        return self._outputs.item_records(self._task_output(task), item, self._shard_starts)

    @cached_property
    def _shard_starts(self) -> list[int]:
        return [shard.start for shard in self._plan().shards]

    def _task_output(self, task: str) -> TaskOutput:
        return self._outputs.task_output(task)

    def _make_piece(
        self, output: TaskOutput, index: int, shard: OutputShard, frames: Sequence[int] | None
    ) -> ShardRecords:
        def read() -> Iterator[bytes]:
            outputs = self._outputs
            return outputs.iter_shard(output, index) if frames is None else outputs.iter_frames(output, index, frames)

        return ShardRecords(shard.counts, read, shard.inputs_outside_key, None if frames is None else len(frames))
