"""Where the records of a batch are read from: its merged outputs, or the outcomes so far where nothing is merged yet.

Every source gives the same answers of the same batch, in the same order. Who asks does not know which one it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import Protocol

import msgspec

from codebatch.index.keys import Lookup
from codebatch.model.plan import Plan
from codebatch.model.record_counts import Counts
from codebatch.scheduling.outcome_counts import OutcomeCounts
from codebatch.store.results.outputs import (
    FramesRead,
    Outputs,
    OutputShard,
    TaskOutput,
)


class ShardRecords(msgspec.Struct, frozen=True):
    """What a task says of a shard: its counts, and how to read the record lines, in blocks of whole lines.

    `unkeyed` is what it rests on besides its key. `frames` are how many an index left to be read, None where it is all.
    """

    counts: Counts
    read: Callable[[], Iterator[bytes]]
    unkeyed: str
    frames: int | None = None


class ShardSoFar(msgspec.Struct, frozen=True):
    """What a task said of a shard by now: how many items have an outcome, how many of them failed, its counts."""

    items: int
    failed: int
    counts: Counts


class RecordSource(Protocol):
    """What questions need of a batch. Methods that take a task are asked for one of `task_names` alone.

    What reads records raises StoreCorrupt where they are not what was written.
    """

    @property
    def place(self) -> str:
        """Where it reads, for people."""

    @property
    def outputs(self) -> Outputs | None:
        """The merged outputs, None where nothing is merged yet."""

    @property
    def task_names(self) -> tuple[str, ...]:
        """The batch's tasks, in plan order."""

    @property
    def project_tasks(self) -> tuple[str, ...]:
        """Those of project scope."""

    @property
    def is_done(self) -> bool:
        """Whether every task has a result of every item. False also where that would have to be looked for."""

    @property
    def frames_read(self) -> FramesRead:
        """What was read until now. Frames are those of merged outputs alone."""

    def tally(self, tasks: Collection[str]) -> OutcomeCounts:
        """How much of some tasks ended how."""

    def files_done(self, tasks: Collection[str]) -> int | None:
        """At how many files all of some tasks, and what they need, have come to an end; None where nothing runs."""

    def iter_shards(self, task: str) -> Iterator[ShardSoFar]:
        """How far a task is with each shard of files, in path order."""

    def iter_pieces(self, task: str, lookups: Sequence[Lookup] = ()) -> Iterator[ShardRecords]:
        """All that a task says, shard by shard in path order. Nothing is read of a piece that nobody reads.

        With `lookups` frames may be left out that hold none of them, where an index knows that.
        """

    def item_lines(self, task: str, item: int) -> bytes | None:
        """The record lines of one item; None where the task has not come to it yet."""


Narrow = Callable[[TaskOutput, Sequence[Lookup]], Sequence[Sequence[int] | None]]
"""The frames of each shard of a task that may hold any of what is looked for, which ascend; None where all may."""


class EmptySource:
    """Of a tree that no task has looked at there are no records."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.outputs: Outputs | None = None
        self.task_names: tuple[str, ...] = ()
        self.project_tasks: tuple[str, ...] = ()
        self.is_done = True
        self.frames_read = FramesRead()

    def tally(self, tasks: Collection[str]) -> OutcomeCounts:
        return OutcomeCounts(planned=0)

    def files_done(self, tasks: Collection[str]) -> int | None:
        return None

    def iter_shards(self, task: str) -> Iterator[ShardSoFar]:
        return iter(())

    def iter_pieces(self, task: str, lookups: Sequence[Lookup] = ()) -> Iterator[ShardRecords]:
        return iter(())

    def item_lines(self, task: str, item: int) -> bytes | None:
        return None


class MergedSource:
    """Reads merged outputs."""

    def __init__(self, outputs: Outputs, plan: Callable[[], Plan], narrow: Narrow | None = None) -> None:
        self._outputs = outputs
        self._manifest = outputs.manifest
        self._plan = plan
        self._narrow = narrow

    @property
    def place(self) -> str:
        return str(self._outputs.root)

    @property
    def outputs(self) -> Outputs:
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
    def frames_read(self) -> FramesRead:
        return self._outputs.read

    def tally(self, tasks: Collection[str]) -> OutcomeCounts:
        return self._manifest.tally(tasks)

    def files_done(self, tasks: Collection[str]) -> None:
        return None

    def iter_shards(self, task: str) -> Iterator[ShardSoFar]:
        for planned, shard in zip(self._plan().shards, self._output(task).shards, strict=False):
            yield ShardSoFar(planned.items, shard.failed, shard.counts)

    def iter_pieces(self, task: str, lookups: Sequence[Lookup] = ()) -> Iterator[ShardRecords]:
        output = self._output(task)
        narrowed: Sequence[Sequence[int] | None] = ()
        if lookups and self._narrow is not None:
            narrowed = self._narrow(output, lookups)
        pieces = zip_longest(enumerate(output.shards), narrowed)
        return (self._piece(output, index, shard, frames) for (index, shard), frames in pieces)

    def item_lines(self, task: str, item: int) -> bytes:
        return self._outputs.item_records(self._output(task), item, self._shard_starts)

    @cached_property
    def _shard_starts(self) -> list[int]:
        return [shard.start for shard in self._plan().shards]

    def _output(self, task: str) -> TaskOutput:
        return self._outputs.task(task)

    def _piece(self, output: TaskOutput, index: int, shard: OutputShard, frames: Sequence[int] | None) -> ShardRecords:
        def read() -> Iterator[bytes]:
            outputs = self._outputs
            return outputs.iter_shard(output, index) if frames is None else outputs.iter_frames(output, index, frames)

        return ShardRecords(shard.counts, read, shard.inputs_outside_key, None if frames is None else len(frames))
