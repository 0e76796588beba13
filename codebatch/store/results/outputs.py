"""Merged outputs: a file of records for each task and shard, and a manifest. Read by every query.

`outputs/<result digest>/` is made whole and renamed into place. Where `resume` settled what had failed there are
several; the one with the highest generation is current, and of a settled batch that which settled.json names.
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
from codebatch.model.record_counts import Counts
from codebatch.model.shard import ShardId
from codebatch.model.task import TASK_NAME_PATTERN
from codebatch.protocol.record_frames import iter_frames
from codebatch.scheduling.outcome_counts import OutcomeCounts
from codebatch.store import layout
from codebatch.store.batches.batches import BatchDir, check_is_there
from codebatch.store.documents import read_document
from codebatch.store.objects.frames import decompress_one
from codebatch.store.results.compaction import SETTLED_HINT, read_compacted
from codebatch.store.results.shard_files import DAMAGE_HINT, FrameRange, Trailer, read_trailer, split_shard_file
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
    counts: Counts = msgspec.field(default_factory=Counts)


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
    counts: Counts
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
    def is_unkeyed(self) -> bool:
        """Whether any of it rests on something that is in no key, so that it is of its batch alone."""
        return any(shard.inputs_outside_key for task in self.tasks for shard in task.shards)

    def task(self, name: str) -> TaskOutput | None:
        """The output of a task."""
        return next((task for task in self.tasks if task.task == name), None)

    def tally(self, names: Collection[str] | None = None) -> OutcomeCounts:
        """How many pairs of an item and a task, of some tasks or of all, ended how."""
        tasks = [task for task in self.tasks if names is None or task.task in names]
        planned = sum(1 if task.scope == "project" else self.items for task in tasks)
        failed = sum(task.failed for task in tasks)
        cancelled = sum(task.cancelled for task in tasks)
        return OutcomeCounts(planned=planned, results=planned - failed - cancelled, failed=failed, cancelled=cancelled)


def decode_manifest(data: bytes) -> Manifest:
    """Read manifest.json. Raises DocumentError."""
    return decode_document(data, Manifest, OUTPUTS_FORMAT)


class FramesRead(msgspec.Struct, kw_only=True):
    """How many frames were decompressed, and how many bytes of records were in them."""

    frames: int = 0
    record_bytes: int = 0

    def count(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """The same blocks, of which each is what a frame holds."""
        for block in blocks:
            self.frames += 1
            self.record_bytes += len(block)
            yield block


_TRAILERS_KEPT = 64


class Outputs(msgspec.Struct, frozen=True):
    """The current merged outputs of a batch. `is_settled`: they are all that there is of it.

    `read` counts what is read of them; `last_trailers` are of the files of which a part was asked for last.
    """

    files: FileReader
    root: Path
    manifest: Manifest
    is_settled: bool = False
    read: FramesRead = msgspec.field(default_factory=FramesRead)
    last_trailers: dict[Path, Trailer] = msgspec.field(default_factory=dict)

    def task(self, name: str) -> TaskOutput:
        """The output of a task of the plan. Raises StoreCorrupt if the manifest has none."""
        found = self.manifest.task(name)
        if found is None:
            raise self._corrupt(self.root / layout.MANIFEST_FILE, f"it has no task {name!r}")
        return found

    def path_of(self, task: TaskOutput, index: int) -> Path:
        """Where a shard's file lies."""
        return self.root / task.task / layout.shard_file_name(index, task.shards[index].shard)

    def is_all_there(self) -> bool:
        """Whether every shard's file is there, as long as it was made. Nothing is read."""
        return self._find_lacking() is None

    def check_lengths(self) -> None:
        """Raises StoreCorrupt where a shard's file is not there, or not as long as it was made. Nothing is read."""
        lacking = self._find_lacking()
        if lacking is not None:
            raise self._corrupt(lacking, "it is missing, or its size changed")

    def _find_lacking(self) -> Path | None:
        return next((self.path_of(task, index) for task in self.manifest.tasks for index in self.lacking(task)), None)

    def lacking(self, task: TaskOutput) -> list[int]:
        """The places of the shards of which the file is not there, or not as long as it was made. Nothing is read."""
        lengths = self.files.lengths(self.root / task.task)
        return [
            index
            for index, shard in enumerate(task.shards)
            if lengths.get(layout.shard_file_name(index, shard.shard)) != shard.length + shard.trailer
        ]

    def iter_shard(self, task: TaskOutput, index: int) -> Iterator[bytes]:
        """The record lines of a shard, frame by frame: whole lines. Raises StoreCorrupt."""
        shard, path = task.shards[index], self.path_of(task, index)
        frames = self._read(path, 0, shard.length)
        with self._damage_told(path):
            yield from self.read.count(iter_frames(frames, shard.bytes))

    def item_records(self, task: TaskOutput, item: int, shard_starts: list[int]) -> bytes:
        """The record lines of one item. `shard_starts` are the plan's. Raises StoreCorrupt."""
        index = bisect.bisect_right(shard_starts, item) - 1
        place, path = item - shard_starts[index], self.path_of(task, index)
        trailer = self._kept_trailer(task, index)
        with self._damage_told(path):
            start, end = item_range(trailer.table, place)
            held = trailer.frames_of(start, end)
        frames = self._read(path, held.offset, held.end - held.offset)
        with self._damage_told(path):
            records = self._decoded(memoryview(frames), held, zstandard.ZstdDecompressor())
            return _item_of(trailer, place, records[start - held.first : end - held.first])

    def _kept_trailer(self, task: TaskOutput, index: int) -> Trailer:
        """As `trailer`. Whoever asks for a part of it asks soon for others."""
        path = self.path_of(task, index)
        trailer = self.last_trailers.pop(path, None) or self.trailer(task, index)
        if len(self.last_trailers) >= _TRAILERS_KEPT:
            del self.last_trailers[next(iter(self.last_trailers))]
        self.last_trailers[path] = trailer
        return trailer

    def trailer(self, task: TaskOutput, index: int) -> Trailer:
        """What a shard's file says of itself, held against the manifest. Raises StoreCorrupt."""
        shard, path = task.shards[index], self.path_of(task, index)
        data = self._read(path, shard.length, shard.trailer)
        with self._damage_told(path):
            return read_trailer(data, shard.digest)

    def whole_frames(self, task: TaskOutput, index: int) -> bytes:
        """The frames of a shard as they lie in its file, every byte held against its trailer. Raises StoreCorrupt."""
        shard, path = task.shards[index], self.path_of(task, index)
        data = self._read(path, 0, shard.length + shard.trailer)
        with self._damage_told(path):
            return split_shard_file(data, shard.digest)[0]

    def iter_items(self, task: TaskOutput, index: int) -> Iterator[bytes]:
        """The record lines of each item of a shard, each held against its row first. Raises StoreCorrupt."""
        with self._damage_told(self.path_of(task, index)):
            yield from iter_items(self.trailer(task, index).table, self.iter_shard(task, index))

    def iter_some(self, task: TaskOutput, index: int, items: Sequence[int]) -> Iterator[bytes]:
        """The record lines of some items of a shard, which ascend, each held against its row; all of many.

        Raises StoreCorrupt.
        """
        if not items:
            return
        trailer, path = self._kept_trailer(task, index), self.path_of(task, index)
        if 2 * len(items) > trailer.items or items[-1] >= trailer.items:
            yield from self.iter_shard(task, index)
            return
        with self._damage_told(path):
            runs = trailer.frames_with(items)
        # At once: what lies between is read faster than the file is opened again.
        start = runs[0][0].offset
        data = memoryview(self._read(path, start, runs[-1][0].end - start))
        decompressor = zstandard.ZstdDecompressor()
        for held, inside in runs:
            with self._damage_told(path):
                records = self._decoded(data[held.offset - start : held.end - start], held, decompressor)
                for item, first, end in inside:
                    yield _item_of(trailer, item, records[first - held.first : end - held.first])

    def iter_frames(self, task: TaskOutput, index: int, frames: Sequence[int]) -> Iterator[bytes]:
        """What each of some frames of a shard holds, whose numbers ascend: whole lines. All of it where it lacks one.

        Each is sound by its own checksum, as in `iter_shard`. Raises StoreCorrupt.
        """
        if not frames:
            return
        trailer, path = self._kept_trailer(task, index), self.path_of(task, index)
        if frames[-1] >= len(trailer.frames):
            yield from self.iter_shard(task, index)
            return
        offsets = trailer.offsets
        # At once: what lies between is read faster than the file is opened again.
        start = offsets[frames[0]]
        data = memoryview(self._read(path, start, offsets[frames[-1] + 1] - start))
        decompressor = zstandard.ZstdDecompressor()
        with self._damage_told(path):
            for number in frames:
                frame = data[offsets[number] - start : offsets[number + 1] - start]
                yield from self.read.count(iter_frames(frame, trailer.frames[number].bytes, decompressor))

    def _decoded(self, data: memoryview, held: FrameRange, decompressor: zstandard.ZstdDecompressor) -> bytes:
        return b"".join(self.read.count(_contents(data, held, decompressor)))

    def _read(self, path: Path, offset: int, length: int) -> bytes:
        try:
            data = self.files.read_range(path, offset, length)
        except FileNotFoundError as error:
            check_is_there(self.files, self.root.parent.parent)
            raise self._corrupt(path, "it is missing") from error
        if len(data) != length:
            raise self._corrupt(path, "it is truncated")
        return data

    @contextlib.contextmanager
    def _damage_told(self, path: Path) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            raise self._corrupt(path, str(error)) from error

    def _corrupt(self, path: Path, problem: str) -> StoreCorrupt:
        return StoreCorrupt(f"{path} is damaged: {problem}", hint=DAMAGE_HINT)


def _contents(data: memoryview, held: FrameRange, decompressor: zstandard.ZstdDecompressor) -> Iterator[bytes]:
    """What each frame of a range holds, which the trailer tells apart. Raises ValueError."""
    at = 0
    for frame in held.frames:
        yield decompress_one(data[at : at + frame.length], frame.bytes, decompressor)
        at += frame.length


def _item_of(trailer: Trailer, item: int, records: bytes) -> bytes:
    """The record lines of an item, held against its row. Raises ValueError."""
    if make_row(records) != trailer.table[item * ROW_BYTES : (item + 1) * ROW_BYTES]:
        raise ValueError("it does not match its item table")
    return records


def current_outputs(batch: BatchDir) -> Outputs | None:
    """The outputs of the highest generation; None where none was merged yet. Raises StoreCorrupt."""
    best: Outputs | None = None
    directory = batch.root / layout.OUTPUTS
    settled = read_compacted(batch)
    for name in batch.files.listing(directory):
        if not DIGEST_PATTERN.match(name) or (settled is not None and name != settled.result_digest):
            continue
        path = directory / name / layout.MANIFEST_FILE
        again = f"remove the directory {directory / name}, then resume with: codebatch resume --batch {batch.id}"
        hint = SETTLED_HINT if settled else again
        try:
            manifest = read_document(batch.files, path, decode_manifest, hint=hint)
        except FileNotFoundError as error:
            check_is_there(batch.files, batch.root)
            raise StoreCorrupt(f"{path} is missing", hint=hint) from error
        if not _is_of(manifest, batch, name):
            raise StoreCorrupt(f"{path} belongs to another batch", hint=hint)
        if best is None or manifest.generation > best.manifest.generation:
            best = Outputs(batch.files, directory / name, manifest, is_settled=settled is not None)
    if settled is not None and best is None:
        check_is_there(batch.files, batch.root)
        raise CorruptFile(str(directory / settled.result_digest), "is missing", hint=SETTLED_HINT)
    return best


def outputs_if_settled_since(batch: BatchDir) -> Outputs | None:
    """Look again at a batch that had no outputs, after what there is of it was read: the outputs on which it rests now.

    None where it is not settled: then nothing had gone. Raises CollectedMeanwhile or StoreCorrupt.
    """
    check_is_there(batch.files, batch.root)
    return None if read_compacted(batch) is None else current_outputs(batch)


def _is_of(manifest: Manifest, batch: BatchDir, directory: str) -> bool:
    """Whether outputs are those that the batch and the directory say."""
    return (
        manifest.plan_digest == batch.about.plan_digest
        and manifest.items == batch.about.items
        and manifest.result_digest == directory
        and all(len(task.shards) == (batch.about.shards or 1) for task in manifest.tasks)
        and all(TASK_NAME_PATTERN.match(task.task) for task in manifest.tasks)
        and all(layout.is_shard_id(shard.shard) for task in manifest.tasks for shard in task.shards)
    )
