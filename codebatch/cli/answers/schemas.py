"""JSON types of answers that no other module defines. Their schemas are in schemas/."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.model.analysis.uses import Certainty
from codebatch.model.entry import EntryLine, PathMembers
from codebatch.model.record import Diagnostic, Failure, FileClass, ParseState
from codebatch.operations.queries.source_line import SourceLine
from codebatch.query.filters.filters import JsonRecord


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """An error. `code` is listed in SPEC.md "Exit statuses". `hint` says what to do, or is null."""

    code: str
    message: str
    hint: str | None
    exit: int


class ErrorAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The last line that a failed command prints to standard error."""

    error: ErrorBody


class InitAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch init`. If `created` is false, the store existed before."""

    store: str
    id: str
    created: bool


class SettingRow(msgspec.Struct, frozen=True, kw_only=True):
    """A setting in the answer of `codebatch config show`. `origin` is the file or other source of its value."""

    value: object
    origin: str


class SkippedPathRow(PathMembers, frozen=True, kw_only=True):
    """A path that is not included in a snapshot, and the reason."""

    reason: str
    shown: str


class SnapshotTakeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch snapshot take`. If `reused` is set, an identical snapshot existed before."""

    snapshot_id: str
    digest: str
    files: int
    bytes: int
    entries: int
    read_files: int
    reused: bool
    skipped: tuple[SkippedPathRow, ...]


class SnapshotListRow(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot in the answer of `codebatch snapshot list`."""

    snapshot_id: str
    created_at: str
    status: Literal["READY", "DAMAGED"]
    files: int
    bytes: int
    source: str


class FileRow(EntryLine, frozen=True, kw_only=True):
    """A file in the answer of `codebatch files`. Members that the batch does not know are missing."""

    lang: str | UnsetType = UNSET
    lines: int | UnsetType = UNSET
    class_: FileClass | UnsetType = msgspec.field(name="class", default=UNSET)
    parse: ParseState | UnsetType = UNSET


class PathSelectionAnswer(PathMembers, frozen=True, kw_only=True):
    """The answer of `codebatch files --why`: whether a path is included, and the rule that includes or excludes it."""

    included: bool
    rule: str
    mode: str


class BatchInitAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch batch init`."""

    batch_id: str
    snapshot_id: str
    pipeline: str
    plan_digest: str


class BatchShowAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch batch show`. `outputs` is null if the batch has no outputs yet."""

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


class BatchOutputsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch batch show --outputs`."""

    outputs: str


class PipelineRow(msgspec.Struct, frozen=True, kw_only=True):
    """A pipeline in the answer of `codebatch pipelines`.

    - `tasks`: all tasks of the pipeline, in dependency order.
    - `default`: `codebatch run` uses the pipeline if no pipeline is given.
    - `builtin`: the pipeline comes with codebatch, so the configuration does not define it.
    """

    name: str
    description: str
    tasks: tuple[str, ...]
    default: bool
    builtin: bool


class TaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """A task of a pipeline. `tools` maps the distributions that can change its results to their versions."""

    task_id: str
    version: str
    tools: dict[str, str]
    scope: str
    depends_on: tuple[str, ...]
    kinds: tuple[str, ...]
    description: str


class PipelineAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch pipeline NAME`."""

    name: str
    description: str
    tasks: tuple[TaskRow, ...]


class ShardRunRow(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a shard after `codebatch run-shard`."""

    shard_id: str
    status: str


class ShardsRunAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch run-shard`. `unfinished` lists the shards that are not done."""

    batch_id: str
    shards: tuple[ShardRunRow, ...]
    unfinished: tuple[str, ...]


class PinAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch pin`."""

    pinned: str


class UnpinAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch unpin`."""

    unpinned: str


class StorePartSize(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a part of a store."""

    files: int
    bytes: int


class AnswerOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of the records of a file: the batch, its snapshot, and the place in the batch from which the records
    were read.
    """

    batch_id: str
    snapshot_id: str
    object: str
    shard_id: str
    item: int
    tasks: tuple[str, ...]
    read_from: str


class InspectFileAnswer(PathMembers, frozen=True, kw_only=True):
    """The records of a file, and their origin."""

    records: tuple[JsonRecord, ...]
    explain: AnswerOrigin


class InspectLineAnswer(PathMembers, frozen=True, kw_only=True):
    """The answer of `codebatch inspect FILE:LINE`. `source` has this line and the lines around it."""

    line: int
    source: tuple[SourceLine, ...]
    records: tuple[JsonRecord, ...]


class SqlColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column of the answer of `codebatch sql`, and its DuckDB type."""

    name: str
    type: str


class SqlAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of an SQL query. Each row maps the names of the columns to values."""

    columns: tuple[SqlColumn, ...]
    rows: tuple[JsonRecord, ...]


class ReferenceRow(PathMembers, frozen=True, kw_only=True):
    """A reference in the answer of `codebatch references`.

    With `--definition` or `--exact`, `target` is the chain of names as written, `resolution` is how certain it is that
    the reference refers to the definition, and `candidates` is the number of definitions to which it can refer. If it
    refers to a method that the definition overrides, `through` is the qualified name of this method, otherwise empty.
    """

    name: str
    line: int
    column: int
    end_line: int
    end_column: int
    role: str
    scope: str
    target: str | UnsetType = UNSET
    resolution: Certainty | UnsetType = UNSET
    candidates: int | UnsetType = UNSET
    through: str | UnsetType = UNSET


class CodeMatchRow(PathMembers, frozen=True, kw_only=True):
    """A match in the answer of `codebatch find`.

    `source` is the first line of the match. `captures` maps each metavariable to its text.

    With `--files`, each row is a file instead. `places` is its number of matches, and the members of matches are
    missing.
    """

    line: int | UnsetType = UNSET
    column: int | UnsetType = UNSET
    end_line: int | UnsetType = UNSET
    end_column: int | UnsetType = UNSET
    source: str | UnsetType = UNSET
    captures: dict[str, str] | UnsetType = UNSET
    places: int | UnsetType = UNSET


class CallerRow(PathMembers, frozen=True, kw_only=True):
    """A function in the answer of `codebatch callers`, with its first call and the number of calls.

    `scope` is the qualified name of the function. It is empty for calls outside of functions. `resolution` is how
    certain it is that the call refers to the name's definition. `candidates` is the number of definitions to which it
    can refer. If the call refers to a method that the definition overrides, `through` is the qualified name of this
    method, otherwise empty.
    """

    scope: str
    line: int
    target: str
    calls: int
    resolution: Certainty
    candidates: int
    through: str


class ImplementationRow(PathMembers, frozen=True, kw_only=True):
    """A type or method in the answer of `codebatch implementations`.

    A type that inherits a type names `base` as its base, after `distance` steps from type to type. A method overrides
    the method `base`. `resolution` is how certain this is. For a type that the batch does not define, it is `external`.
    """

    line: int
    column: int
    symbol_type: str
    qualified: str
    relation: Literal["implements", "inherits", "overrides"]
    base: str
    distance: int
    resolution: Certainty


class SymbolDependentRow(PathMembers, frozen=True, kw_only=True):
    """Code in the answer of `codebatch impact NAME` that uses a symbol, directly or indirectly.

    `scope` is the enclosing definition, or empty for code outside of definitions. `distance` is the number of uses from
    the scope to the symbol. The first of these uses is at `line` and refers to the symbol `uses`. `resolution` is the
    least certain of them. If the scope uses a method that the symbol overrides, `through` is the qualified name of this
    method, otherwise empty.
    """

    scope: str
    distance: int
    uses: str
    line: int
    resolution: Certainty
    through: str


class ErrorFinding(Diagnostic, frozen=True, kw_only=True, tag="diagnostic"):
    """A finding in the answer of `codebatch errors`. `task_id` is the task that reported it."""

    task_id: str


class FailureWithEvidence(Failure, frozen=True, kw_only=True, tag="failure"):
    """A failure in the answer of `codebatch errors`. `evidence` is its recorded cause, such as a traceback."""

    evidence: str | UnsetType = UNSET


class CompletionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch completion`: the completion script of a shell."""

    shell: str
    script: str
