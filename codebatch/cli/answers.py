"""What commands say under `--json`, where it is no type of another room. Schemas of them are in schemas/."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.application.inspecting import SourceLine
from codebatch.model.record import Diagnostic, Failure, FileClass, ParseState
from codebatch.query.filters import JsonRecord


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """What speaks of a path: under `path`, or under `path_b64` where it is no UTF-8."""

    path: str | UnsetType = UNSET
    path_b64: str | UnsetType = UNSET


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong: `code` as in SPEC.md "Exit statuses", and what to do, where that is known."""

    code: str
    message: str
    hint: str | None
    exit: int


class ErrorAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The last line of standard error of a command that failed."""

    error: ErrorBody


class StoreMade(msgspec.Struct, frozen=True, kw_only=True):
    """`init`; `created`: it was not there before."""

    store: str
    id: str
    created: bool


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting in `config show`."""

    value: object
    origin: str


class SkippedPath(Placed, frozen=True, kw_only=True):
    """What a snapshot does not hold, and why."""

    reason: str
    shown: str


class SnapshotTaken(msgspec.Struct, frozen=True, kw_only=True):
    """`snapshot DIR`. `reused`: it was there before."""

    snapshot_id: str
    digest: str
    files: int
    bytes: int
    entries: int
    read_files: int
    reused: bool
    skipped: tuple[SkippedPath, ...]


class ListedSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One of `snapshot list`."""

    snapshot_id: str
    created_at: str
    status: Literal["READY", "DAMAGED"]
    files: int
    bytes: int
    source: str


class EntryRow(Placed, frozen=True, kw_only=True):
    """An entry of a snapshot."""

    kind: str
    executable: bool
    size: int
    object: str


class FileRow(EntryRow, frozen=True, kw_only=True):
    """One of `files`, with what a batch says of it."""

    lang: str | UnsetType = UNSET
    lines: int | UnsetType = UNSET
    class_: FileClass | UnsetType = msgspec.field(name="class", default=UNSET)
    parse: ParseState | UnsetType = UNSET


class WhyTaken(Placed, frozen=True, kw_only=True):
    """`files --why`: whether a path is taken, and which rule decides."""

    included: bool
    rule: str
    mode: str


class BatchMade(msgspec.Struct, frozen=True, kw_only=True):
    """`batch init`."""

    batch_id: str
    snapshot_id: str
    pipeline: str
    plan_digest: str


class BatchRow(msgspec.Struct, frozen=True, kw_only=True):
    """One of `batch list`."""

    batch_id: str
    created_at: str
    snapshot_id: str
    pipeline: str
    status: str
    files: int
    source: str
    paths: tuple[str, ...]
    names: tuple[str, ...]


class BatchShown(msgspec.Struct, frozen=True, kw_only=True):
    """`batch show`; `outputs` is null where it has none yet."""

    batch_id: str
    created_at: str
    snapshot_id: str
    pipeline: str
    status: str
    source: str
    paths: tuple[str, ...]
    plan_digest: str
    names: tuple[str, ...]
    outputs: str | None


class BatchOutputs(msgspec.Struct, frozen=True, kw_only=True):
    """`batch show --outputs`."""

    outputs: str


class PipelineRow(msgspec.Struct, frozen=True, kw_only=True):
    """One of `pipelines`."""

    name: str
    description: str
    tasks: tuple[str, ...]


class TaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """A task of a pipeline."""

    task_id: str
    version: str
    scope: str
    depends_on: tuple[str, ...]
    kinds: tuple[str, ...]
    description: str


class PipelineShown(msgspec.Struct, frozen=True, kw_only=True):
    """`pipeline NAME`."""

    name: str
    description: str
    tasks: tuple[TaskRow, ...]


class ShardRan(msgspec.Struct, frozen=True, kw_only=True):
    """How a shard stands after `run-shard`."""

    shard_id: str
    status: str


class ShardsRan(msgspec.Struct, frozen=True, kw_only=True):
    """`run-shard`; `unfinished` are those that are not done."""

    batch_id: str
    shards: tuple[ShardRan, ...]
    unfinished: tuple[str, ...]


class Pinned(msgspec.Struct, frozen=True, kw_only=True):
    """`pin`."""

    pinned: str


class Unpinned(msgspec.Struct, frozen=True, kw_only=True):
    """`unpin`."""

    unpinned: str


class PartHeld(msgspec.Struct, frozen=True, kw_only=True):
    """What a part of a store holds."""

    files: int
    bytes: int


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where the answer of `inspect --explain` comes from."""

    batch_id: str
    snapshot_id: str
    object: str
    shard_id: str
    item: int
    tasks: tuple[str, ...]
    read_from: str


class InspectedOrigin(Placed, frozen=True, kw_only=True):
    """`inspect FILE --explain`: the records, and where they come from; how true they are as in `summary`."""

    batch_id: str
    records: tuple[JsonRecord, ...]
    explain: Origin
    project: str
    complete: bool
    percent: float
    stale: bool | None
    paths: tuple[str, ...]


class LineInspected(Placed, frozen=True, kw_only=True):
    """`inspect FILE:LINE`, with `source`, the lines around it; how true it is as in `summary`."""

    batch_id: str
    line: int
    source: tuple[SourceLine, ...]
    records: tuple[JsonRecord, ...]
    project: str
    complete: bool
    percent: float
    stale: bool | None
    paths: tuple[str, ...]


class SqlColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column of what `sql` answers, and its type as DuckDB has it."""

    name: str
    type: str


class SqlAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`sql`; how true it is as in `summary`. Each row has its values by the names of the columns."""

    batch_id: str
    columns: tuple[SqlColumn, ...]
    rows: tuple[JsonRecord, ...]
    project: str
    complete: bool
    percent: float
    stale: bool | None
    paths: tuple[str, ...]


class ReferenceRow(Placed, frozen=True, kw_only=True):
    """One of `references`."""

    name: str
    line: int
    column: int
    end_line: int
    end_column: int
    role: str
    scope: str


class FoundPlace(Placed, frozen=True, kw_only=True):
    """One of `find`: a place, the line of source in which it begins, and what stands for each name.

    Under `--files` a file with how many `places` it has, and nothing else.
    """

    line: int | UnsetType = UNSET
    column: int | UnsetType = UNSET
    end_line: int | UnsetType = UNSET
    end_column: int | UnsetType = UNSET
    source: str | UnsetType = UNSET
    captures: dict[str, str] | UnsetType = UNSET
    places: int | UnsetType = UNSET


class CallerRow(Placed, frozen=True, kw_only=True):
    """One of `callers`: a scope, its first call, and how many there are. The scope of a file is empty."""

    scope: str
    line: int
    target: str
    calls: int


class ErrorFound(Diagnostic, frozen=True, kw_only=True, tag="diagnostic"):
    """A diagnostic in `errors`, with the task that said it."""

    task_id: str


class FailureFound(Failure, frozen=True, kw_only=True, tag="failure"):
    """A failure in `errors`, with what is known of it."""

    evidence: str | UnsetType = UNSET


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """`completion`: what a shell reads to complete our words."""

    shell: str
    script: str
