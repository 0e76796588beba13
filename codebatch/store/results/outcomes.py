"""Outcome registers: write-once names in the `outcomes/` directory of a batch, published by link(2).

A commit is written in this order (SPEC.md "Write ordering"): append the bytes to the segment, fsync (and once per
segment, fsync its directory); write the commit file under a hidden name, fsync; link it once for each outcome; fsync
the directory. So a commit takes three fsyncs for any number of tasks. If a process dies between two links, some tasks
of a unit have outcomes and others do not. This is a normal state: open work is computed for each task.
"""

from __future__ import annotations

import contextlib
import errno
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path

import msgspec

from codebatch.errors import StoreCorrupt
from codebatch.model.analysis.item_table import ROW_BYTES, item_lengths, item_range, iter_items, make_table
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.entry import path_fields
from codebatch.model.outcome import (
    CommandReport,
    Commit,
    HolderId,
    OutcomeRegister,
    OutcomeType,
    TaskOutcome,
    WorkUnit,
    decode_commit,
    encode_commit,
    first_uncovered_input,
)
from codebatch.model.record import CommandReason, Failure, FailureReason
from codebatch.model.record_counts import RecordCounts, add_counts
from codebatch.protocol.record_frames import FrameWriter, decode_frames, decode_range, iter_frames
from codebatch.store import layout
from codebatch.store.batches.batch_directory import NEW_BATCH_HINT, check_batch_exists
from codebatch.store.documents import read_document_bytes
from codebatch.store.results.shard_files import DAMAGE_HINT, ShardTrailer, read_trailer, split_shard_file
from codebatch.system.files.files import FileAppender, StoreFiles


class SegmentWriter:
    """The append-only result file of one holder."""

    def __init__(self, files: StoreFiles, batch_root: Path, holder: HolderId) -> None:
        self._files = files
        self._directory = batch_root / layout.RESULTS
        self._appender: FileAppender = files.open_append(self._directory / layout.segment_name(holder))
        self._has_durable_name = False

    def append(self, frames: bytes, table: bytes) -> int:
        """Append the frames and the item table of an outcome. Return their offset. Durable after `sync`."""
        return self._appender.append(frames + table)

    def sync(self) -> None:
        """Sync the segment. On return all appended bytes and the name of the segment are on disk."""
        self._appender.sync()
        if not self._has_durable_name:
            self._files.sync_directory(self._directory)
            self._has_durable_name = True

    def close(self) -> None:
        """Close the file."""
        self._appender.close()


class EncodedOutcome(msgspec.Struct, frozen=True):
    """An outcome without its offset in a segment, with the bytes to append and a text for the journal."""

    outcome: TaskOutcome
    frames: bytes
    table: bytes
    evidence: str = ""


def attempt_outcome(
    unit: WorkUnit,
    type_: OutcomeType,
    reason: CommandReason | None = None,
    exit_status: int | None = None,
    *,
    question: Digest = Digest(""),  # noqa: B008 # A Digest is an immutable str.
    report: CommandReport | None = None,
    until_ns: int = 0,
    wait_seconds: float = 0.0,
    is_final: bool = False,
    changes: Digest = Digest(""),  # noqa: B008 # A Digest is an immutable str.
    unrecorded: int = 0,
    outputs: Digest = Digest(""),  # noqa: B008 # A Digest is an immutable str.
    inputs: Digest = Digest(""),  # noqa: B008 # A Digest is an immutable str.
    notes: tuple[str, ...] = (),
) -> EncodedOutcome:
    """Return the outcome of an attempt of a command. It has no records and no bytes."""
    outcome = TaskOutcome(
        shard=unit.shard,
        task=unit.tasks[0],
        start=unit.start,
        end=unit.end,
        type=type_,
        reason=reason,
        exit_status=exit_status,
        question=question,
        result=report,
        until_ns=until_ns,
        wait_seconds=wait_seconds,
        is_final=is_final,
        changes=changes,
        unrecorded=unrecorded,
        outputs=outputs,
        inputs=inputs,
        notes=notes,
    )
    return EncodedOutcome(outcome, b"", b"")


def encode_outcome(
    outcome: TaskOutcome, items: Sequence[bytes], frame_writer: FrameWriter, *, evidence: str = ""
) -> EncodedOutcome:
    """Return an outcome with the lengths and checksums of its items' records, and the encoded bytes."""
    records = b"".join(items)
    table = make_table(items)
    frames = frame_writer.encode(records)
    completed = msgspec.structs.replace(
        outcome, length=len(frames), bytes=len(records), crc=zlib.crc32(frames), digest=digest_bytes(table)
    )
    return EncodedOutcome(completed, frames, table, evidence)


def join_parts(outcome: TaskOutcome, parts: Sequence[EncodedOutcome], *, evidence: str = "") -> EncodedOutcome:
    """Return the outcome of a project task. `parts` are its outcomes for each shard of files, in path order.

    If a part has a shard file of its own, it adds no bytes to the segment.
    """
    written = [b"" if part.outcome.file else part.frames + part.table for part in parts]
    offsets = accumulate(map(len, written), initial=0)
    frames = b"".join(written)
    return EncodedOutcome(
        msgspec.structs.replace(
            outcome,
            length=len(frames),
            bytes=sum(part.outcome.bytes for part in parts),
            digest=digest_bytes(b"".join(part.table for part in parts)),
            counts=add_counts(part.outcome.counts for part in parts),
            inputs_outside_key=first_uncovered_input(part.outcome for part in parts),
            parts=tuple(part.outcome.at_offset(offset) for part, offset in zip(parts, offsets, strict=False)),
        ),
        frames,
        b"",
        evidence,
    )


def failed_outcome(
    path_bytes: bytes,
    register: OutcomeRegister,
    reason: FailureReason,
    frame_writer: FrameWriter,
    *,
    evidence: str = "",
    inputs: Digest | None = None,
) -> EncodedOutcome:
    """Return the outcome of a task that failed for one item. Its only record is a `failure`."""
    path, path_b64 = path_fields(path_bytes)
    failure = Failure(path=path, path_b64=path_b64, task=register.task, reason=reason)
    outcome = TaskOutcome(
        shard=register.shard,
        task=register.task,
        start=register.start,
        end=register.start + 1,
        type="failed",
        reason=reason,
        counts=RecordCounts(kinds={"failure": 1}),
        inputs=inputs or Digest(""),
    )
    return encode_outcome(outcome, [msgspec.json.encode(failure) + b"\n"], frame_writer, evidence=evidence)


class OutcomeScan(msgspec.Struct, frozen=True):
    """The commits that appeared since the last scan, and the registers that appeared and cannot be read."""

    commits: list[Commit]
    unreadable: list[OutcomeRegister]


class OutcomeCommitter:
    """The writer of a holder's outcomes. It appends bytes to the holder's segment, then publishes the registers."""

    def __init__(self, files: StoreFiles, batch_root: Path, holder: HolderId) -> None:
        self._holder = holder
        self._segment = SegmentWriter(files, batch_root, holder)
        self._outcomes = OutcomeRegisters(files, batch_root)
        self._sequence = 0

    def commit_outcomes(self, encoded: Sequence[EncodedOutcome], *, epoch: int, round_: int) -> Commit:
        """Publish outcomes. Return a commit with only those that won their registers. Durable on return.

        An outcome that is not returned lost its register to another process. Attempts of commands have no bytes, so
        only a commit file is written for them.
        """
        outcomes = tuple(part.outcome for part in encoded)
        if any(part.frames or part.table for part in encoded):
            outcomes = tuple(part.outcome.at_offset(self._segment.append(part.frames, part.table)) for part in encoded)
            self._segment.sync()
        commit = Commit(segment=self._holder, epoch=epoch, round=round_, outcomes=outcomes)
        self._sequence += 1
        lost = self._outcomes.publish_commit(commit, self._holder, self._sequence)
        return msgspec.structs.replace(commit, outcomes=tuple(part for part in outcomes if part not in lost))

    def adopt_outcomes(self, outcomes: Sequence[TaskOutcome]) -> int:
        """Publish outcomes whose bytes are in durable shard files. Return how many of them lost their register."""
        commit = Commit(segment=self._holder, epoch=0, round=1, outcomes=tuple(outcomes))
        self._sequence += 1
        return len(self._outcomes.publish_commit(commit, self._holder, self._sequence))

    def close(self) -> None:
        """Close the segment."""
        self._segment.close()


class OutcomeRegisters:
    """The registers of one batch: published, listed and read. Each reading continues after the last one."""

    def __init__(self, files: StoreFiles, batch_root: Path) -> None:
        self._files = files
        self._directory = batch_root / layout.OUTCOMES
        self._results = batch_root / layout.RESULTS
        self._scanned_names: set[str] = set()

    def publish_commit(self, commit: Commit, holder: HolderId, sequence: int) -> list[TaskOutcome]:
        """Publish outcomes with durable bytes. Return those that lost their register to another process."""
        hidden = f"{self._directory}/.{holder}.{sequence}.tmp"
        encoded = encode_commit(commit)
        try:
            try:
                self._files.write_new(hidden, encoded)
            except FileNotFoundError as error:
                raise removed_outcomes_error(self._files, self._directory.parent) from error
            lost = [
                outcome
                for outcome in commit.outcomes
                if not self._try_link(hidden, encoded, _register_name(commit, outcome))
            ]
            self._files.sync_directory(self._directory)
        finally:
            self._files.remove(hidden)
        return lost

    def _try_link(self, hidden: str, encoded: bytes, register: str) -> bool:
        """Link a commit file to the name of a register. Return False if the name exists.

        A commit file may reach the maximum number of links (ext4: 65,000, others 1,023). Then it is replaced by a new
        file with the same content, and further names are links to the new file.
        """
        path = f"{self._directory}/{register}"
        try:
            return self._files.create_exclusive(hidden, path)
        except OSError as error:
            if error.errno != errno.EMLINK:
                raise
        self._files.remove(hidden)
        self._files.write_new(hidden, encoded)
        return self._files.create_exclusive(hidden, path)

    def note_commit(self, commit: Commit) -> None:
        """Record outcomes that a worker has reported, so that no later scan reads them from disk."""
        self._scanned_names.update(_register_name(commit, outcome) for outcome in commit.outcomes)

    def scan_new(self) -> OutcomeScan:
        """Read the registers that appeared since the last scan. Outcomes that lost their register are omitted.

        An unreadable register has no outcome, but its name is taken. So its work is repeated in the next round.
        """
        unreadable: list[OutcomeRegister] = []
        return OutcomeScan(list(self.iter_commits(self.list_new(), unreadable)), unreadable)

    def list_new(self) -> list[list[str]]:
        """Return the names of the registers that appeared since the last call, one list for each commit file."""
        by_inode: dict[int, list[str]] = {}
        for name, inode in self._files.listing(self._directory).items():
            if name not in self._scanned_names and layout.is_register_name(name):
                self._scanned_names.add(name)
                by_inode.setdefault(inode, []).append(name)
        return list(by_inode.values())

    def iter_commits(self, listed: Iterable[list[str]], unreadable: list[OutcomeRegister]) -> Iterator[Commit]:
        """Yield the commits of names from `list_new`. Append unreadable registers to `unreadable`."""
        directory = str(self._directory)
        for names in listed:
            try:
                commit = decode_commit(read_document_bytes(self._files, f"{directory}/{names[0]}"))
            except (FileNotFoundError, ValueError):
                unreadable.extend(_parse_registers(names))
                continue
            expected = [_register_name(commit, outcome) for outcome in commit.outcomes]
            if expected != names:
                won = set(names)
                unreadable.extend(_parse_registers(sorted(won.difference(expected))))
                outcomes = tuple(
                    outcome for name, outcome in zip(expected, commit.outcomes, strict=True) if name in won
                )
                commit = msgspec.structs.replace(commit, outcomes=outcomes)
            yield commit

    def read_bytes(self, segment: HolderId, outcome: TaskOutcome) -> tuple[bytes, bytes]:
        """Return the frames of an outcome and its item table, both verified. Raises StoreCorrupt."""
        if outcome.file:
            return self._read_adopted(outcome)
        rows = (outcome.end - outcome.start) * ROW_BYTES
        path = self._results / layout.segment_name(segment)
        try:
            data = self._files.read_range(path, outcome.offset, outcome.length + rows)
        except FileNotFoundError:
            check_batch_exists(self._files, self._directory.parent)
            data = b""
        if len(data) != outcome.length + rows:
            raise StoreCorrupt(f"{path} is truncated or missing", hint=_RERUN_HINT)
        frames, table = data[: outcome.length], data[outcome.length :]
        if digest_bytes(table) != outcome.digest or outcome.crc != zlib.crc32(frames):
            raise StoreCorrupt(
                f"{path} is damaged: the data of shard {outcome.shard} does not match its checksum", hint=_RERUN_HINT
            )
        return frames, table

    def _read_adopted(self, outcome: TaskOutcome) -> tuple[bytes, bytes]:
        path = self.adopted_path(outcome.file)
        with _shard_damage_as_corrupt(path):
            frames, trailer = split_shard_file(self._files.read(path), outcome.file)
        if digest_bytes(trailer.table) != outcome.digest:
            raise StoreCorrupt(
                f"{path} is damaged: its records do not match the checksum in the outcome of the shard",
                hint=_RERUN_HINT,
            )
        return frames, trailer.table

    def read_trailer(self, outcome: TaskOutcome) -> ShardTrailer:
        """Return the trailer of the reused shard file of an outcome. Raises StoreCorrupt."""
        path = self.adopted_path(outcome.file)
        with _shard_damage_as_corrupt(path):
            return read_trailer(self._files.read_range(path, outcome.length, sys.maxsize), outcome.file)

    def adopted_path(self, digest: Digest) -> Path:
        """Return the path of a reused shard file."""
        return self._results / layout.adopted_name(digest)

    def iter_items(self, segment: HolderId, outcome: TaskOutcome) -> Iterator[bytes]:
        """Yield the record lines of each item of an outcome, verified before they are yielded. Raises StoreCorrupt."""
        frames, table = self.read_bytes(segment, outcome)
        with _damage_as_corrupt(outcome):
            yield from iter_items(table, iter_frames(frames, outcome.bytes))

    def read_item(self, segment: HolderId, outcome: TaskOutcome, item: int) -> bytes:
        """Return the verified record lines of an item, numbered from the outcome's first item. Raises StoreCorrupt."""
        frames, table = self.read_bytes(segment, outcome)
        start, end = item_range(table, item)
        row = table[item * ROW_BYTES : (item + 1) * ROW_BYTES]
        with _damage_as_corrupt(outcome):
            return b"".join(iter_items(row, (decode_range(frames, outcome.bytes, start, end),)))

    def read_items(self, segment: HolderId, outcome: TaskOutcome) -> tuple[bytes, list[int]]:
        """Return the record lines of an outcome, and their bounds: item `i` has bytes bounds[i] to bounds[i + 1].

        Only the checksums of the frames are verified. Raises StoreCorrupt.
        """
        frames, table = self.read_bytes(segment, outcome)
        bounds = list(accumulate(item_lengths(table), initial=0))
        with _damage_as_corrupt(outcome):
            records = decode_frames(frames, outcome.bytes)
            if bounds[-1] != len(records):
                raise ValueError("its length does not match its item table")
        return records, bounds


def removed_outcomes_error(files: StoreFiles, batch_root: Path) -> StoreCorrupt:
    """Return the error for outcomes that another process removed while this process runs."""
    resume = f"the remaining results are kept; resume with: codebatch resume --batch {batch_root.name}"
    return StoreCorrupt(
        f"another process removed result files from {batch_root / layout.OUTCOMES}",
        hint=NEW_BATCH_HINT if files.stat(batch_root) is None else resume,
    )


_RERUN_HINT = "run everything again with: codebatch run --again PATH"


@contextlib.contextmanager
def _shard_damage_as_corrupt(path: Path) -> Iterator[None]:
    """Convert errors of a damaged shard file within the context to StoreCorrupt."""
    try:
        yield
    except (FileNotFoundError, ValueError) as error:
        raise StoreCorrupt(f"{path} is damaged or missing: {error}", hint=DAMAGE_HINT) from error


@contextlib.contextmanager
def _damage_as_corrupt(outcome: TaskOutcome) -> Iterator[None]:
    """Convert errors of damaged outcome bytes within the context to StoreCorrupt."""
    try:
        yield
    except ValueError as error:
        raise StoreCorrupt(f"an outcome of shard {outcome.shard} is damaged: {error}", hint=_RERUN_HINT) from error


def _parse_registers(names: Iterable[str]) -> Iterator[OutcomeRegister]:
    return (register for register in map(layout.parse_register_name, names) if register is not None)


def _register_name(commit: Commit, outcome: TaskOutcome) -> str:
    return layout.register_name(outcome.shard, outcome.start, outcome.task, commit.round)
