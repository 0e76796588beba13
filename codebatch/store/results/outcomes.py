"""Outcome registers: write-once names, published with link(2), in a batch's `outcomes/`.

Order of writes of a commit (SPEC.md "Write ordering"): the segment's bytes, fsync, and once in its life the
fsync of the directory that names it; the commit file under a hidden name, fsync; one link for each outcome; fsync of
the directory. Three fsyncs, whatever the number of tasks. A process that dies between two links leaves some tasks of a
unit settled and others open, which is a state like any other: what is open is computed for each task.
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
    Outcome,
    OutcomeType,
    Register,
    Unit,
    decode_commit,
    encode_commit,
    first_unkeyed,
)
from codebatch.model.record import CommandReason, Failure, FailureReason
from codebatch.model.record_counts import Counts, add_counts
from codebatch.protocol.record_frames import FrameWriter, decode_frames, decode_range, iter_frames
from codebatch.store import layout
from codebatch.store.batches.batches import NEW_BATCH_HINT, check_is_there
from codebatch.store.documents import read_document_bytes
from codebatch.store.results.shard_files import DAMAGE_HINT, Trailer, read_trailer, split_shard_file
from codebatch.system.files.files import Appender, Files


class Segment:
    """A holder's own append-only file of results."""

    def __init__(self, files: Files, batch_root: Path, holder: HolderId) -> None:
        self._files = files
        self._directory = batch_root / layout.RESULTS
        self._appender: Appender = files.open_append(self._directory / layout.segment_name(holder))
        self._has_durable_name = False

    def append(self, frames: bytes, table: bytes) -> int:
        """Add an outcome's bytes; returns their offset. Durable after `sync`."""
        return self._appender.append(frames + table)

    def sync(self) -> None:
        """On return everything appended is on disk, and so is the segment's name: fsync(2) of a file is none of it."""
        self._appender.sync()
        if not self._has_durable_name:
            self._files.sync_directory(self._directory)
            self._has_durable_name = True

    def close(self) -> None:
        """Release the file."""
        self._appender.close()


class EncodedOutcome(msgspec.Struct, frozen=True):
    """An outcome without its place in a segment, the bytes that go there, and evidence for the journal."""

    outcome: Outcome
    frames: bytes
    table: bytes
    evidence: str = ""


def attempt_outcome(
    unit: Unit,
    type_: OutcomeType,
    reason: CommandReason | None = None,
    exit_status: int | None = None,
    *,
    question: Digest = Digest(""),  # noqa: B008 # A name for a text, which nothing changes.
    said: CommandReport | None = None,
    until_ns: int = 0,
    is_final: bool = False,
) -> EncodedOutcome:
    """How an attempt of a command ended. It has no records, and so no bytes."""
    outcome = Outcome(
        shard=unit.shard,
        task=unit.tasks[0],
        start=unit.start,
        end=unit.end,
        type=type_,
        reason=reason,
        exit_status=exit_status,
        question=question,
        result=said,
        until_ns=until_ns,
        is_final=is_final,
    )
    return EncodedOutcome(outcome, b"", b"")


def encode_outcome(
    outcome: Outcome, items: Sequence[bytes], frame_writer: FrameWriter, *, evidence: str = ""
) -> EncodedOutcome:
    """Complete an outcome with the bytes of its items' record lines."""
    records = b"".join(items)
    table = make_table(items)
    frames = frame_writer.encode(records)
    ended = msgspec.structs.replace(
        outcome, length=len(frames), bytes=len(records), crc=zlib.crc32(frames), digest=digest_bytes(table)
    )
    return EncodedOutcome(ended, frames, table, evidence)


def join_parts(outcome: Outcome, parts: Sequence[EncodedOutcome], *, evidence: str = "") -> EncodedOutcome:
    """Complete a project task's outcome with what it says of each shard of files, in path order.

    Nothing of a part that lies in a shard file goes to the segment.
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
            inputs_outside_key=first_unkeyed(part.outcome for part in parts),
            parts=tuple(part.outcome.at(offset) for part, offset in zip(parts, offsets, strict=False)),
        ),
        frames,
        b"",
        evidence,
    )


def failed_outcome(
    path_bytes: bytes,
    register: Register,
    reason: FailureReason,
    frame_writer: FrameWriter,
    *,
    evidence: str = "",
    inputs: Digest | None = None,
) -> EncodedOutcome:
    """The outcome of a task that failed at one item: its `failure` record stands where the item's records would."""
    path, path_b64 = path_fields(path_bytes)
    failure = Failure(path=path, path_b64=path_b64, task=register.task, reason=reason)
    outcome = Outcome(
        shard=register.shard,
        task=register.task,
        start=register.start,
        end=register.start + 1,
        type="failed",
        reason=reason,
        counts=Counts(kinds={"failure": 1}),
        inputs=inputs or Digest(""),
    )
    return encode_outcome(outcome, [msgspec.json.encode(failure) + b"\n"], frame_writer, evidence=evidence)


class Scan(msgspec.Struct, frozen=True):
    """What a look at the registers found that the look before did not."""

    commits: list[Commit]
    unreadable: list[Register]


class Committer:
    """What a holder commits through: its own segment, then the registers, in that order."""

    def __init__(self, files: Files, batch_root: Path, holder: HolderId) -> None:
        self._holder = holder
        self._segment = Segment(files, batch_root, holder)
        self._outcomes = Outcomes(files, batch_root)
        self._sequence = 0

    def commit(self, encoded: Sequence[EncodedOutcome], *, epoch: int, round_: int) -> Commit:
        """Make outcomes durable together; returns those that won their names. The rest was another's work already.

        Attempts of commands have no bytes, and nothing is written of them but the commit.
        """
        outcomes = tuple(one.outcome for one in encoded)
        if any(one.frames or one.table for one in encoded):
            outcomes = tuple(one.outcome.at(self._segment.append(one.frames, one.table)) for one in encoded)
            self._segment.sync()
        commit = Commit(segment=self._holder, epoch=epoch, round=round_, outcomes=outcomes)
        self._sequence += 1
        lost = self._outcomes.commit(commit, self._holder, self._sequence)
        return msgspec.structs.replace(commit, outcomes=tuple(one for one in outcomes if one not in lost))

    def adopt(self, outcomes: Sequence[Outcome]) -> int:
        """Commit outcomes whose bytes lie in shard files that are on disk; how many names another process had."""
        commit = Commit(segment=self._holder, epoch=0, round=1, outcomes=tuple(outcomes))
        self._sequence += 1
        return len(self._outcomes.commit(commit, self._holder, self._sequence))

    def close(self) -> None:
        """Release the segment."""
        self._segment.close()


class Outcomes:
    """The registers of one batch."""

    def __init__(self, files: Files, batch_root: Path) -> None:
        self._files = files
        self._directory = batch_root / layout.OUTCOMES
        self._results = batch_root / layout.RESULTS
        self._seen: set[str] = set()

    def commit(self, commit: Commit, holder: HolderId, sequence: int) -> list[Outcome]:
        """Publish outcomes whose bytes are durable already; returns those whose name another process had taken."""
        hidden = f"{self._directory}/.{holder}.{sequence}.tmp"
        encoded = encode_commit(commit)
        try:
            try:
                self._files.write_new(hidden, encoded)
            except FileNotFoundError as error:
                raise lost_outcomes(self._files, self._directory.parent) from error
            lost = [one for one in commit.outcomes if not self._link(hidden, encoded, _register_name(commit, one))]
            self._files.sync_directory(self._directory)
        finally:
            self._files.remove(hidden)
        return lost

    def _link(self, hidden: str, encoded: bytes, register: str) -> bool:
        """Give a commit file a register's name; False where another file has it.

        Where it has as many names as the file system gives one (ext4: 65,000, others 1,023) an equal file goes on.
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

    def note(self, commit: Commit) -> None:
        """Whoever made a commit has told of it, with the outcomes that it won: no scan need read it."""
        self._seen.update(_register_name(commit, outcome) for outcome in commit.outcomes)

    def scan(self) -> Scan:
        """Read the registers that appeared since the last scan. A commit holds just the outcomes it won.

        A register that cannot be read is no outcome; its name is taken, so its work is done again one round up.
        """
        unreadable: list[Register] = []
        return Scan(list(self.iter_commits(self.list_new(), unreadable)), unreadable)

    def list_new(self) -> list[list[str]]:
        """The names of the registers that appeared since this was last asked: those of one file together."""
        by_inode: dict[int, list[str]] = {}
        for name, inode in self._files.listing(self._directory).items():
            if name not in self._seen and layout.is_register_name(name):
                self._seen.add(name)
                by_inode.setdefault(inode, []).append(name)
        return list(by_inode.values())

    def iter_commits(self, listed: Iterable[list[str]], unreadable: list[Register]) -> Iterator[Commit]:
        """What `scan` makes of names that were listed, one commit at a time; what cannot be read is added to a list."""
        directory = str(self._directory)
        for names in listed:
            try:
                commit = decode_commit(read_document_bytes(self._files, f"{directory}/{names[0]}"))
            except (FileNotFoundError, ValueError):
                unreadable.extend(_parsed(names))
                continue
            named = [_register_name(commit, outcome) for outcome in commit.outcomes]
            if named != names:
                won = set(names)
                unreadable.extend(_parsed(sorted(won.difference(named))))
                outcomes = tuple(one for name, one in zip(named, commit.outcomes, strict=True) if name in won)
                commit = msgspec.structs.replace(commit, outcomes=outcomes)
            yield commit

    def read_bytes(self, segment: HolderId, outcome: Outcome) -> tuple[bytes, bytes]:
        """Return the frames of an outcome and its item table, both verified. Raises StoreCorrupt."""
        if outcome.file:
            return self._read_adopted(outcome)
        rows = (outcome.end - outcome.start) * ROW_BYTES
        path = self._results / layout.segment_name(segment)
        try:
            data = self._files.read_range(path, outcome.offset, outcome.length + rows)
        except FileNotFoundError:
            check_is_there(self._files, self._directory.parent)
            data = b""
        if len(data) != outcome.length + rows:
            raise StoreCorrupt(f"{path} is truncated or missing", hint=_HINT)
        frames, table = data[: outcome.length], data[outcome.length :]
        if digest_bytes(table) != outcome.digest or outcome.crc != zlib.crc32(frames):
            raise StoreCorrupt(
                f"{path} is damaged: the data of shard {outcome.shard} does not match its checksum", hint=_HINT
            )
        return frames, table

    def _read_adopted(self, outcome: Outcome) -> tuple[bytes, bytes]:
        path = self.adopted_path(outcome.file)
        with _file_damage_told(path):
            frames, trailer = split_shard_file(self._files.read(path), outcome.file)
        if digest_bytes(trailer.table) != outcome.digest:
            raise StoreCorrupt(f"{path} is damaged: its rows do not match the outcome of the shard", hint=_HINT)
        return frames, trailer.table

    def read_trailer(self, outcome: Outcome) -> Trailer:
        """What the shard file of an outcome that was taken over says of itself. Raises StoreCorrupt."""
        path = self.adopted_path(outcome.file)
        with _file_damage_told(path):
            return read_trailer(self._files.read_range(path, outcome.length, sys.maxsize), outcome.file)

    def adopted_path(self, digest: Digest) -> Path:
        """Where a shard file that was taken over lies."""
        return self._results / layout.adopted_name(digest)

    def iter_items(self, segment: HolderId, outcome: Outcome) -> Iterator[bytes]:
        """The record lines of each item of an outcome, one at a time; each is checked first. Raises StoreCorrupt."""
        frames, table = self.read_bytes(segment, outcome)
        with _damage_told(outcome):
            yield from iter_items(table, iter_frames(frames, outcome.bytes))

    def read_item(self, segment: HolderId, outcome: Outcome, item: int) -> bytes:
        """The record lines of one item, counted from the outcome's first, checked. Raises StoreCorrupt."""
        frames, table = self.read_bytes(segment, outcome)
        start, end = item_range(table, item)
        row = table[item * ROW_BYTES : (item + 1) * ROW_BYTES]
        with _damage_told(outcome):
            return b"".join(iter_items(row, (decode_range(frames, outcome.bytes, start, end),)))

    def read_items(self, segment: HolderId, outcome: Outcome) -> tuple[bytes, list[int]]:
        """The record lines of an outcome, and their bounds: item `i` has those from the `i`th to the one behind it.

        The frames' own checksums are checked. Raises StoreCorrupt.
        """
        frames, table = self.read_bytes(segment, outcome)
        bounds = list(accumulate(item_lengths(table), initial=0))
        with _damage_told(outcome):
            records = decode_frames(frames, outcome.bytes)
            if bounds[-1] != len(records):
                raise ValueError("its length does not match its item table")
        return records, bounds


def lost_outcomes(files: Files, batch_root: Path) -> StoreCorrupt:
    """What was committed while we run is not there any more."""
    resume = f"the remaining results are kept; resume with: codebatch resume --batch {batch_root.name}"
    return StoreCorrupt(
        f"another process removed outcomes from {batch_root / layout.OUTCOMES}",
        hint=NEW_BATCH_HINT if files.stat(batch_root) is None else resume,
    )


_HINT = "run everything again with: codebatch run --again PATH"


@contextlib.contextmanager
def _file_damage_told(path: Path) -> Iterator[None]:
    """Turn what is wrong with a shard file into StoreCorrupt."""
    try:
        yield
    except (FileNotFoundError, ValueError) as error:
        raise StoreCorrupt(f"{path} is damaged or missing: {error}", hint=DAMAGE_HINT) from error


@contextlib.contextmanager
def _damage_told(outcome: Outcome) -> Iterator[None]:
    """Turn what is wrong with an outcome's bytes into StoreCorrupt."""
    try:
        yield
    except ValueError as error:
        raise StoreCorrupt(f"an outcome of shard {outcome.shard} is damaged: {error}", hint=_HINT) from error


def _parsed(names: Iterable[str]) -> Iterator[Register]:
    return (register for register in map(layout.parse_register, names) if register is not None)


def _register_name(commit: Commit, outcome: Outcome) -> str:
    return layout.register_name(outcome.shard, outcome.start, outcome.task, commit.round)
