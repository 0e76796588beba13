"""Merged outputs: a file of records for each task and shard, and a manifest. Every query reads them.

The directory `outputs/<result digest>/` is completed under a hidden name and then renamed. Each `resume` that replaces
failures adds a directory. The directory with the highest generation is the current one. If the batch is settled,
settled.json names the current one.
"""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec
import zstandard

from codebatch.errors import CorruptFile, StoreCorrupt
from codebatch.model.analysis.item_table import ROW_BYTES, item_range, iter_items, make_row
from codebatch.model.digest import DIGEST_PATTERN, Digest
from codebatch.model.documents import Document, decode_document
from codebatch.model.record_counts import RecordCounts
from codebatch.model.shard import ShardId
from codebatch.model.task import TASK_NAME_PATTERN
from codebatch.protocol.record_frames import iter_frames
from codebatch.scheduling.outcome_counts import OutcomeCounts
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir, check_batch_exists
from codebatch.store.documents import read_document
from codebatch.store.objects.frames import decompress_one
from codebatch.store.results.compaction import SETTLED_HINT, read_compacted
from codebatch.store.results.shard_files import DAMAGE_HINT, FrameRange, ShardTrailer, read_trailer, split_shard_file
from codebatch.system.files.file_reader import FileReader

OUTPUTS_FORMAT = 1


class OutputShard(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The output file of a shard: `length` bytes of frames, and a trailer of `trailer` bytes with the digest `digest`.

    The frames have `bytes` bytes of records. `reused` counts the items whose results were taken from older batches.
    `inputs_outside_key` describes inputs that the cache key does not cover, if any result has such inputs.
    """

    shard: ShardId
    length: int
    trailer: int
    digest: Digest
    bytes: int
    failed: int = 0
    cancelled: int = 0
    reused: int = 0
    inputs_outside_key: str = ""
    counts: RecordCounts = msgspec.field(default_factory=RecordCounts)


class TaskOutput(msgspec.Struct, frozen=True, kw_only=True):
    """The merged output of a task. `failed` and `cancelled` count items; a project task has one item.

    `shards` are in the order of the plan. If a project task failed, it has one shard with only that failure.
    """

    task: str
    scope: Literal["file", "project"]
    digest: Digest
    length: int
    bytes: int
    failed: int
    cancelled: int
    counts: RecordCounts
    shards: tuple[OutputShard, ...]


class Manifest(Document, frozen=True, kw_only=True):
    """The document manifest.json of an outputs directory. `generation` counts outcomes that later rounds replaced."""

    format: int = OUTPUTS_FORMAT
    plan_digest: Digest
    result_digest: Digest
    generation: int
    items: int
    tasks: tuple[TaskOutput, ...]

    @property
    def has_inputs_outside_key(self) -> bool:
        """True if any result has inputs that the cache key does not cover, so that the result must not be reused."""
        return any(shard.inputs_outside_key for task in self.tasks for shard in task.shards)

    def task_output(self, name: str) -> TaskOutput | None:
        """Return the output of a task, or None."""
        return next((task for task in self.tasks if task.task == name), None)

    def count_outcomes(self, names: Collection[str] | None = None) -> OutcomeCounts:
        """Count the (item, task) pairs of given tasks, or of all tasks, by the type of their outcome."""
        tasks = [task for task in self.tasks if names is None or task.task in names]
        planned = sum(1 if task.scope == "project" else self.items for task in tasks)
        failed = sum(task.failed for task in tasks)
        cancelled = sum(task.cancelled for task in tasks)
        return OutcomeCounts(planned=planned, results=planned - failed - cancelled, failed=failed, cancelled=cancelled)


def decode_manifest(data: bytes) -> Manifest:
    """Decode manifest.json. Raises DocumentError."""
    return decode_document(data, Manifest, OUTPUTS_FORMAT)


class ReadFrameCounts(msgspec.Struct, kw_only=True):
    """Counters of a query: the decompressed frames, and the record bytes in them."""

    frames: int = 0
    record_bytes: int = 0

    def count(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the blocks unchanged, and add them to the counters. Each block is the content of one frame."""
        for block in blocks:
            self.frames += 1
            self.record_bytes += len(block)
            yield block


_TRAILERS_CACHED_MAX = 64


class MergedOutputs(msgspec.Struct, frozen=True):
    """The current merged outputs of a batch.

    - `is_settled`: the batch is settled, so its results cannot be merged again.
    - `read`: counters of the frames and bytes that were read.
    - `last_trailers`: a cache of trailers of shard files that were read in part, least recently used first.
    """

    files: FileReader
    root: Path
    manifest: Manifest
    is_settled: bool = False
    read: ReadFrameCounts = msgspec.field(default_factory=ReadFrameCounts)
    last_trailers: dict[Path, ShardTrailer] = msgspec.field(default_factory=dict)

    def task_output(self, name: str) -> TaskOutput:
        """Return the output of a task of the plan. Raises StoreCorrupt if the manifest has none."""
        task = self.manifest.task_output(name)
        if task is None:
            raise self._corrupt_error(self.root / layout.MANIFEST_FILE, f"it has no task {name!r}")
        return task

    def shard_path(self, task: TaskOutput, index: int) -> Path:
        """Return the path of a shard file."""
        return self.root / task.task / layout.shard_file_name(index, task.shards[index].shard)

    def is_complete(self) -> bool:
        """Return whether every shard file exists and has the length in the manifest. No content is read."""
        return self._find_missing() is None

    def check_lengths(self) -> None:
        """Raise StoreCorrupt if a shard file is missing or has another length than in the manifest.

        No content is read.
        """
        missing = self._find_missing()
        if missing is not None:
            raise self._corrupt_error(missing, "it is missing, or its size changed")

    def _find_missing(self) -> Path | None:
        return next(
            (self.shard_path(task, index) for task in self.manifest.tasks for index in self.missing_shards(task)), None
        )

    def missing_shards(self, task: TaskOutput) -> list[int]:
        """Return the indexes of the shards whose file is missing or has another length than in the manifest.

        No content is read.
        """
        lengths = self.files.lengths(self.root / task.task)
        return [
            index
            for index, shard in enumerate(task.shards)
            if lengths.get(layout.shard_file_name(index, shard.shard)) != shard.length + shard.trailer
        ]

    def iter_shard(self, task: TaskOutput, index: int) -> Iterator[bytes]:
        """Yield the record lines of a shard, frame by frame, as blocks of whole lines. Raises StoreCorrupt."""
        shard, path = task.shards[index], self.shard_path(task, index)
        frames = self._read_range(path, 0, shard.length)
        with self._damage_as_corrupt(path):
            yield from self.read.count(iter_frames(frames, shard.bytes))

    def item_records(self, task: TaskOutput, item: int, shard_starts: list[int]) -> bytes:
        """Return the record lines of one item. Raises StoreCorrupt.

        `shard_starts` are the first items of the plan's shards, ascending.
        """
        index = bisect.bisect_right(shard_starts, item) - 1
        place, path = item - shard_starts[index], self.shard_path(task, index)
        trailer = self._cached_trailer(task, index)
        with self._damage_as_corrupt(path):
            start, end = item_range(trailer.table, place)
            frame_range = trailer.covering_frames(start, end)
        frames = self._read_range(path, frame_range.offset, frame_range.end - frame_range.offset)
        with self._damage_as_corrupt(path):
            records = self._decode_range(memoryview(frames), frame_range, zstandard.ZstdDecompressor())
            return _verified_item(trailer, place, records[start - frame_range.first : end - frame_range.first])

    def _cached_trailer(self, task: TaskOutput, index: int) -> ShardTrailer:
        """Return the trailer of a shard file, from a cache of the trailers read last.

        A caller that reads one part of a file often reads other parts of this file soon.
        """
        path = self.shard_path(task, index)
        trailer = self.last_trailers.pop(path, None) or self.trailer(task, index)
        if len(self.last_trailers) >= _TRAILERS_CACHED_MAX:
            del self.last_trailers[next(iter(self.last_trailers))]
        self.last_trailers[path] = trailer
        return trailer

    def trailer(self, task: TaskOutput, index: int) -> ShardTrailer:
        """Return the trailer of a shard file, verified against the manifest. Raises StoreCorrupt."""
        shard, path = task.shards[index], self.shard_path(task, index)
        data = self._read_range(path, shard.length, shard.trailer)
        with self._damage_as_corrupt(path):
            return read_trailer(data, shard.digest)

    def verified_frames(self, task: TaskOutput, index: int) -> bytes:
        """Return the compressed frames of a shard, verified against its trailer. Raises StoreCorrupt."""
        shard, path = task.shards[index], self.shard_path(task, index)
        data = self._read_range(path, 0, shard.length + shard.trailer)
        with self._damage_as_corrupt(path):
            return split_shard_file(data, shard.digest)[0]

    def iter_items(self, task: TaskOutput, index: int) -> Iterator[bytes]:
        """Yield the record lines of each item of a shard, each verified by the item table. Raises StoreCorrupt."""
        with self._damage_as_corrupt(self.shard_path(task, index)):
            yield from iter_items(self.trailer(task, index).table, self.iter_shard(task, index))

    def iter_selected_items(self, task: TaskOutput, index: int, items: Sequence[int]) -> Iterator[bytes]:
        """Yield blocks with the record lines of the items `items` of a shard. `items` must ascend. Raises StoreCorrupt.

        Each item is verified by the item table. Yield the whole shard if `items` has more than half of the shard's
        items, or an item that is not in the shard.
        """
        if not items:
            return
        trailer, path = self._cached_trailer(task, index), self.shard_path(task, index)
        if 2 * len(items) > trailer.items or items[-1] >= trailer.items:
            yield from self.iter_shard(task, index)
            return
        with self._damage_as_corrupt(path):
            runs = trailer.frames_with(items)
        # One read, because reading the frames in between is faster than opening the file again.
        start = runs[0][0].offset
        data = memoryview(self._read_range(path, start, runs[-1][0].end - start))
        decompressor = zstandard.ZstdDecompressor()
        for frame_range, inside in runs:
            with self._damage_as_corrupt(path):
                records = self._decode_range(
                    data[frame_range.offset - start : frame_range.end - start], frame_range, decompressor
                )
                for item, first, end in inside:
                    yield _verified_item(trailer, item, records[first - frame_range.first : end - frame_range.first])

    def iter_frames(self, task: TaskOutput, index: int, frames: Sequence[int]) -> Iterator[bytes]:
        """Yield the content of the frames `frames` of a shard as blocks of whole lines. `frames` must ascend.

        If one of the frames does not exist, yield the whole shard. Frames are verified by their own checksums, not by
        the item table. Raises StoreCorrupt.
        """
        if not frames:
            return
        trailer, path = self._cached_trailer(task, index), self.shard_path(task, index)
        if frames[-1] >= len(trailer.frames):
            yield from self.iter_shard(task, index)
            return
        offsets = trailer.offsets
        # One read, because reading the frames in between is faster than opening the file again.
        start = offsets[frames[0]]
        data = memoryview(self._read_range(path, start, offsets[frames[-1] + 1] - start))
        decompressor = zstandard.ZstdDecompressor()
        with self._damage_as_corrupt(path):
            for number in frames:
                frame = data[offsets[number] - start : offsets[number + 1] - start]
                yield from self.read.count(iter_frames(frame, trailer.frames[number].bytes, decompressor))

    def _decode_range(
        self, data: memoryview, frame_range: FrameRange, decompressor: zstandard.ZstdDecompressor
    ) -> bytes:
        return b"".join(self.read.count(_iter_frame_contents(data, frame_range, decompressor)))

    def _read_range(self, path: Path, offset: int, length: int) -> bytes:
        try:
            data = self.files.read_range(path, offset, length)
        except FileNotFoundError as error:
            check_batch_exists(self.files, self.root.parent.parent)
            raise self._corrupt_error(path, "it is missing") from error
        if len(data) != length:
            raise self._corrupt_error(path, "it is truncated")
        return data

    @contextlib.contextmanager
    def _damage_as_corrupt(self, path: Path) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            raise self._corrupt_error(path, str(error)) from error

    def _corrupt_error(self, path: Path, problem: str) -> StoreCorrupt:
        return StoreCorrupt(f"{path} is damaged: {problem}", hint=DAMAGE_HINT)


def _iter_frame_contents(
    data: memoryview, frame_range: FrameRange, decompressor: zstandard.ZstdDecompressor
) -> Iterator[bytes]:
    """Yield the content of each frame of a range. Raises ValueError if a frame is damaged."""
    offset = 0
    for frame in frame_range.frames:
        yield decompress_one(data[offset : offset + frame.length], frame.bytes, decompressor)
        offset += frame.length


def _verified_item(trailer: ShardTrailer, item: int, records: bytes) -> bytes:
    """Return the record lines of an item after verifying them by the item table. Raises ValueError."""
    if make_row(records) != trailer.table[item * ROW_BYTES : (item + 1) * ROW_BYTES]:
        raise ValueError("it does not match its item table")
    return records


def current_outputs(batch: BatchDir) -> MergedOutputs | None:
    """Return the outputs with the highest generation, or None if none were merged. Raises StoreCorrupt."""
    best: MergedOutputs | None = None
    directory = batch.root / layout.OUTPUTS
    settled = read_compacted(batch)
    for name in batch.files.listing(directory):
        if not DIGEST_PATTERN.match(name) or (settled is not None and name != settled.result_digest):
            continue
        path = directory / name / layout.MANIFEST_FILE
        repair_hint = f"remove the directory {directory / name}, then resume with: codebatch resume --batch {batch.id}"
        hint = SETTLED_HINT if settled else repair_hint
        try:
            manifest = read_document(batch.files, path, decode_manifest, hint=hint)
        except FileNotFoundError as error:
            check_batch_exists(batch.files, batch.root)
            raise StoreCorrupt(f"{path} is missing", hint=hint) from error
        if not _belongs_to(manifest, batch, name):
            raise StoreCorrupt(f"{path} belongs to another batch", hint=hint)
        if best is None or manifest.generation > best.manifest.generation:
            best = MergedOutputs(batch.files, directory / name, manifest, is_settled=settled is not None)
    if settled is not None and best is None:
        check_batch_exists(batch.files, batch.root)
        raise CorruptFile(str(directory / settled.result_digest), "is missing", hint=SETTLED_HINT)
    return best


def outputs_if_settled_since(batch: BatchDir) -> MergedOutputs | None:
    """Return the outputs of a batch if it is settled, otherwise None.

    A reader that finds no outputs reads outcomes instead, and calls this afterwards. None means that no outcome was
    removed while the reader read, so the outcomes are complete. Otherwise the reader must use the returned outputs.
    Raises BatchRemoved or StoreCorrupt.
    """
    check_batch_exists(batch.files, batch.root)
    return None if read_compacted(batch) is None else current_outputs(batch)


def _belongs_to(manifest: Manifest, batch: BatchDir, directory: str) -> bool:
    """Return whether a manifest belongs to `batch` and to the output directory named `directory`."""
    return (
        manifest.plan_digest == batch.about.plan_digest
        and manifest.items == batch.about.items
        and manifest.result_digest == directory
        and all(len(task.shards) == (batch.about.shards or 1) for task in manifest.tasks)
        and all(TASK_NAME_PATTERN.match(task.task) for task in manifest.tasks)
        and all(layout.is_shard_id(shard.shard) for task in manifest.tasks for shard in task.shards)
    )
