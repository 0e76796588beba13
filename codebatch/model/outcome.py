"""Outcomes: the write-once results of units of work (SPEC.md "Outcomes").

A coordinator holds a unit and an outcome for every shard and task. These objects are excluded from Python's garbage
collection (`gc=False`) to save time. This is safe, because they are frozen and refer only to older objects, so they
cannot form cycles.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, NewType

import msgspec

from codebatch.model.digest import DIGEST_PATTERN, Digest
from codebatch.model.documents import Document, decode_document, encode_document
from codebatch.model.record import CommandReason, FailureReason
from codebatch.model.record_counts import RecordCounts
from codebatch.model.shard import ShardId

HolderId = NewType("HolderId", str)
"""The uuid of a process that holds or held leases, 32 hex digits."""

OutcomeType = Literal["result", "failed", "blocked", "cancelled"]

COMMIT_FORMAT = 1


class WorkUnit(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A unit of work: `tasks`, in plan order, for the items [start, end) of a shard.

    Items are counted from the shard's first item.
    """

    shard: ShardId
    start: int
    end: int
    tasks: tuple[str, ...]
    round: int = 1

    def sub_unit(self, start: int, end: int, tasks: tuple[str, ...]) -> WorkUnit:
        """Return a smaller unit with the items [start, end) and the tasks `tasks` of this unit."""
        return WorkUnit(shard=self.shard, start=start, end=end, tasks=tasks, round=self.round)


COST_MAX = 10**15
"""Maximum cost of an attempt, in any unit. A higher one counts as unreadable, so that sums are finite and exact."""


class CommandReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Values from the JSON output of a command: a text, which may be truncated, the cost in any unit, and a session.

    `session` identifies the session in which the command can continue its work.
    """

    text: str = ""
    cost: float | None = None
    session: str = ""


class TaskOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The outcome of a task for the items [start, end) of a shard.

    The bytes [offset, offset + length) of the segment `segment` are zstd frames with `bytes` bytes of records. `crc` is
    the crc32 of the frames (0 in older batches). The frames are followed by `end - start` rows of the item table
    (item_table.py), whose digest is `digest`. A `failed` outcome covers one item and has its `failure` record. A
    `cancelled` outcome has no bytes.

    `reused` counts the items whose results were taken from another batch. If all results were reused, `file` is the
    digest of the shard file in `results/` that has the bytes, and the segment is not used (shard_files.py).
    `inputs_outside_key` describes inputs that the cache key does not cover. Other batches do not reuse such a result.

    An outcome of a project task covers the one item of its own shard. `inputs` is the digest of the inputs of the task.
    The bytes of a `result` are the bytes of its `parts`: one outcome for each shard of files, in path order.

    An outcome of a task list covers one attempt of a task and has no records:

    - `type` is `blocked` if the task waits for an answer, and `cancelled` if a request ended or prevented the attempt.
    - `exit_status` is the exit status of the command or of its `check`. It is negative if a signal ended the process.
    - `question` is the digest of the question with which the command ended, or empty.
    - `result` has the values from the JSON output of the command.
    - `until_ns` is set if the reason is `limited`: the pools of the task are closed until this time.
      `wait_seconds` is the time from the end of the attempt until then.
    - `is_final` means that the task is not retried, even if retries are left.
    - `changes` is the digest of the change set of an attempt in a tree of its own (model/change.py), or empty.
    - `unrecorded` is the number of paths with work that this change set does not record.
    - `outputs` is the digest of the collected outputs, or empty. It is a change set that only adds files.
    - `inputs` is the digest of all that the list names, if the task is skipped while nothing of it changes, or empty.
    - `notes` are sentences for people: the limit that ended the attempt, and what was ignored, cut or
      replaced by a default in it.
    """

    shard: ShardId
    task: str
    start: int
    end: int
    type: OutcomeType
    reason: FailureReason | CommandReason | None = None
    offset: int = 0
    length: int = 0
    bytes: int = 0
    crc: int = 0
    digest: Digest = Digest("")
    counts: RecordCounts = msgspec.field(default_factory=RecordCounts)
    file: Digest = Digest("")
    reused: int = 0
    inputs_outside_key: str = ""
    inputs: Digest = Digest("")
    parts: tuple[TaskOutcome, ...] = ()
    exit_status: int | None = None
    question: Digest = Digest("")
    result: CommandReport | None = None
    until_ns: int = 0
    wait_seconds: float = 0.0
    is_final: bool = False
    changes: Digest = Digest("")
    unrecorded: int = 0
    outputs: Digest = Digest("")
    notes: tuple[str, ...] = ()

    def at_offset(self, offset: int) -> TaskOutcome:
        """Return this outcome for bytes that begin at `offset` in the segment.

        The relative offsets of its parts become absolute.
        """
        parts = tuple(part.at_offset(offset + part.offset) for part in self.parts)
        return msgspec.structs.replace(self, offset=offset, parts=parts)


class ResourceUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The resources used by an attempt: elapsed seconds, CPU seconds and the memory peak of all its processes."""

    seconds: float
    cpu_seconds: float
    memory_peak_bytes: int


class Commit(Document, frozen=True, kw_only=True, gc=False):
    """The content of a commit file: outcomes that became durable together.

    The file is hard-linked under the name of each outcome.
    """

    format: int = COMMIT_FORMAT
    segment: HolderId
    epoch: int
    round: int
    outcomes: tuple[TaskOutcome, ...]


class OutcomeRegister(NamedTuple):
    """The parts of a register's name: task, shard, first item and round of the work that ended."""

    shard: ShardId
    start: int
    task: str
    round: int


def first_uncovered_input(outcomes: Iterable[TaskOutcome]) -> str:
    """Return the first description of inputs that a cache key does not cover, or "" if every key covers all inputs."""
    return next((outcome.inputs_outside_key for outcome in outcomes if outcome.inputs_outside_key), "")


def encode_commit(commit: Commit) -> bytes:
    """Return the bytes of a commit file."""
    return encode_document(commit)


def decode_commit(data: bytes) -> Commit:
    """Decode a commit file. Raises ValueError if the file is damaged or has impossible values."""
    commit = decode_document(data, Commit, COMMIT_FORMAT)
    for outcome in commit.outcomes:
        is_range_valid = outcome.type not in ("failed", "blocked") or outcome.end == outcome.start + 1
        if not (0 <= outcome.start < outcome.end and is_range_valid):
            raise ValueError("an outcome with an impossible range")
        for part in (outcome, *outcome.parts):
            if part.file and not DIGEST_PATTERN.match(part.file):
                raise ValueError("an outcome in no file of ours")
        if not all(DIGEST_PATTERN.match(digest) for digest in (outcome.changes, outcome.outputs) if digest):
            raise ValueError("an outcome with an invalid change set")
    return commit
