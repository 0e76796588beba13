"""Keys of a work file and their types (SPEC.md "Work files").

The types also define the JSON schema of the file. The `description` of a type is shown in messages as the expected
value.
"""

from __future__ import annotations

import typing
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from codebatch.model.work.command import GRACE_SECONDS, LOG_MB_MAX, QUESTION_LINES, Leftovers
from codebatch.model.work.work_batch import (
    ANSWERING_SECONDS,
    BACKOFF_FACTOR,
    BACKOFF_SECONDS,
    BACKOFF_SECONDS_MAX,
    COMMANDS_MAX,
    NOTIFIED,
    NOTIFY_SECONDS,
    RESTARTS_MAX,
    RETRIES_MAX,
    RETRY_REASONS,
    EventName,
    Halt,
    IfInterrupted,
    OnBlocked,
    OnFailure,
    OnTrouble,
    RetryReason,
    Strategy,
)

SECONDS_MAX = 1_000_000_000
NUMBER_MAX = 1_000_000
STATUS_MAX = 255
BACKOFF_FACTOR_MAX = 1_000

Text = Annotated[str, Meta(description="a string")]
FileName = Annotated[str, Meta(min_length=1, description="a file path")]
_CHUNK = f'an integer from 1 to {NUMBER_MAX:,}, or "all"'
Words = Annotated[tuple[str, ...], Meta(description="a list of strings")]
Patterns = Annotated[tuple[str, ...], Meta(description="a list of patterns")]
Ids = Annotated[tuple[str, ...], Meta(description="a list of task IDs")]
Flag = Annotated[bool, Meta(description="true or false")]
Count = Annotated[int, Meta(ge=1, le=NUMBER_MAX, description=f"an integer from 1 to {NUMBER_MAX:,}")]
Restarts = Annotated[int, Meta(ge=0, le=NUMBER_MAX, description=f"an integer from 0 to {NUMBER_MAX:,}")]
Rank = Annotated[
    int, Meta(ge=-NUMBER_MAX, le=NUMBER_MAX, description=f"an integer from -{NUMBER_MAX:,} to {NUMBER_MAX:,}")
]
Status = Annotated[int, Meta(ge=0, le=STATUS_MAX)]
Seconds = Annotated[float, Meta(gt=0, le=SECONDS_MAX, description=f"a number above 0 and at most {SECONDS_MAX:,}")]
Grace = Annotated[float, Meta(ge=0, le=SECONDS_MAX, description=f"a number from 0 to {SECONDS_MAX:,}")]
Environment = Annotated[dict[str, str], Meta(description="a table of strings")]
Pools = Annotated[
    dict[str, Annotated[int, Meta(ge=1, le=NUMBER_MAX)]],
    Meta(description=f"a table of integers from 1 to {NUMBER_MAX:,}"),
]


def _choice(kind: object) -> Meta:
    """Return the description of a choice between words, for example `"a", "b" or "c"`."""
    *words, last = (f'"{word}"' for word in typing.get_args(kind))
    return Meta(description=f"{', '.join(words)} or {last}")


Statuses = Annotated[tuple[Status, ...], Meta(min_length=1, description=f"a list of integers from 0 to {STATUS_MAX}")]
Pointer = Annotated[str, Meta(pattern="^(/.*)?$")]


class TryTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of `tries`: changes to the task for a retry."""

    run: str | Annotated[tuple[str, ...], Meta(min_length=1)] = ""
    env: dict[str, str] = msgspec.field(default_factory=dict)
    timeout_seconds: Seconds | UnsetType = UNSET
    text_suffix: str = ""


class QuestionTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`question`: how a question is found at the end of the output of a task."""

    pattern: str = ""
    last_lines: Annotated[int, Meta(ge=1, le=1000)] = QUESTION_LINES
    exits: tuple[Status, ...] = ()


class RetryTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`retry_if`: the failures after which a task is retried."""

    exits: tuple[Status, ...] = ()
    pattern: str = ""


class ResultTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`result`: JSON pointers into the last JSON object of a task's output."""

    text: Pointer = ""
    question: Pointer = ""
    cost: Pointer = ""
    session: Pointer = ""


class RuleTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of `[[answering.rules]]`: an automatic answer to matching questions."""

    match: Annotated[str, Meta(min_length=1)]
    answer: str = ""
    human: bool = False


class AnsweringTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[answering]`: automatic answers to questions, before a person is asked."""

    rules: tuple[RuleTable, ...] = ()
    command: str | tuple[str, ...] = ""
    timeout_seconds: Seconds = ANSWERING_SECONDS
    per_task_max: Count = 1


class EnvFileTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of `env_file`: a file of environment variables. If `required` is false, it may be missing."""

    path: Annotated[str, Meta(min_length=1)]
    required: bool = True


_EnvFileEntry = Annotated[str, Meta(min_length=1)] | EnvFileTable
EnvFileEntries = Annotated[
    _EnvFileEntry | tuple[_EnvFileEntry, ...],
    Meta(description="a file path, a table with `path` and `required`, or a list of these"),
]


class TaskDefaults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[defaults]`: default settings of all tasks. Variables in `env` are added to the variables of each task."""

    run: Annotated[
        str | Annotated[tuple[str, ...], Meta(min_length=1)],
        Meta(description="a string, or a list of strings that is not empty"),
    ] = ""
    title: Text = ""
    text: Text = ""
    cwd: Annotated[str, Meta(description="a path below `root`")] = "."
    env: Environment = msgspec.field(default_factory=dict)
    env_file: EnvFileEntries = ()
    stdin: Annotated[str, Meta(min_length=1, description='"none", "text" or the path of a file')] = "none"
    priority: Rank = 0
    pools: Pools = msgspec.field(default_factory=dict)
    exclusive: Flag = False
    exit_ok: Statuses = (0,)
    timeout_seconds: Seconds | UnsetType = UNSET
    stall_seconds: Seconds | UnsetType = UNSET
    grace_seconds: Grace = GRACE_SECONDS
    if_interrupted: Annotated[IfInterrupted, _choice(IfInterrupted)] = "restart"
    restarts_max: Restarts = RESTARTS_MAX
    expected_seconds: Seconds | UnsetType = UNSET
    leftovers: Annotated[Leftovers, _choice(Leftovers)] = "kill"
    memory_mb_max: Count | UnsetType = UNSET
    log_mb_max: Count = LOG_MB_MAX
    inputs: Patterns = ()
    outputs: Patterns = ()
    tags: Words = ()
    check: Annotated[str | tuple[str, ...], Meta(description="a string, or a list of strings")] = ""
    retries: (
        Annotated[int, Meta(ge=0, le=RETRIES_MAX, description=f"an integer from 0 to {RETRIES_MAX}")] | UnsetType
    ) = UNSET
    backoff_seconds: Grace = BACKOFF_SECONDS
    backoff_factor: Annotated[
        float, Meta(ge=1, le=BACKOFF_FACTOR_MAX, description=f"a number from 1 to {BACKOFF_FACTOR_MAX}")
    ] = BACKOFF_FACTOR
    backoff_seconds_max: Grace = BACKOFF_SECONDS_MAX
    retry_reasons: Annotated[
        tuple[RetryReason, ...], Meta(description="a list with any of " + ", ".join(typing.get_args(RetryReason)))
    ] = RETRY_REASONS
    tries: Annotated[
        tuple[TryTable, ...],
        Meta(
            max_length=RETRIES_MAX, description="a list of tables with `run`, `env`, `timeout_seconds` or `text_suffix`"
        ),
    ] = ()
    retry_if: Annotated[RetryTable, Meta(description="a table with `exits` or `pattern`")] | UnsetType = UNSET
    wait_if: Annotated[str, Meta(description="a regular expression")] = ""
    on_exhausted: Annotated[OnTrouble, _choice(OnTrouble)] = "fail"
    on_stall: Annotated[OnTrouble, _choice(OnTrouble)] = "fail"
    question: (
        Annotated[QuestionTable, Meta(description="a table with `pattern`, `last_lines` or `exits`")] | UnsetType
    ) = UNSET
    result: (
        Annotated[
            ResultTable, Meta(description="a table with `text`, `question`, `cost` or `session`, each a JSON pointer")
        ]
        | UnsetType
    ) = UNSET


class EachTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`each`: makes one task for each value. Exactly one key is set; `files` may be combined with `chunk`."""

    files: Patterns | UnsetType = UNSET
    chunk: Annotated[Annotated[int, Meta(ge=1, le=NUMBER_MAX)] | Literal["all"], Meta(description=_CHUNK)] = 1
    values: Words | UnsetType = UNSET
    matrix: Annotated[dict[str, tuple[str, ...]], Meta(description="a table of lists of strings")] | UnsetType = UNSET
    lines: FileName | UnsetType = UNSET
    json: FileName | UnsetType = UNSET


class InferTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`infer`: a command that prints dependencies between tasks. It is used with `strategy = "auto"`."""

    command: Annotated[tuple[str, ...], Meta(min_length=1, description="a list of strings that is not empty")]
    timeout_seconds: Seconds = 120.0


class TaskTable(TaskDefaults, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[tasks.ID]`: a command and its dependencies."""

    needs: Ids = ()
    after: Ids = ()
    each: (
        Annotated[EachTable, Meta(description="a table with `files`, `values`, `matrix`, `lines` or `json`")]
        | UnsetType
    ) = UNSET


class NotifyTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[notify]`: a command that receives events as JSON on its standard input."""

    command: Annotated[str, Meta(min_length=1)] | Annotated[tuple[str, ...], Meta(min_length=1)]
    events: tuple[EventName, ...] = NOTIFIED
    timeout_seconds: Annotated[float, Meta(gt=0, le=SECONDS_MAX)] = NOTIFY_SECONDS


class SettingsTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a task list that apply to all its tasks."""

    strategy: Annotated[Strategy, _choice(Strategy)] | UnsetType = UNSET
    max_parallel: Count | UnsetType = UNSET
    on_failure: Annotated[OnFailure, _choice(OnFailure)] = "skip-dependents"
    failures_max: Annotated[int, Meta(ge=1, le=COMMANDS_MAX, description=f"an integer from 1 to {COMMANDS_MAX:,}")] = 1
    pools: Pools = msgspec.field(default_factory=dict)
    env: Environment = msgspec.field(default_factory=dict)
    env_file: EnvFileEntries = ()
    clean_env: Flag = False
    root: Annotated[str, Meta(min_length=1, description="the path of a directory")] = "."
    infer: (
        Annotated[InferTable, Meta(description="a table with `command` and, optionally, `timeout_seconds`")] | UnsetType
    ) = UNSET
    notify: (
        Annotated[
            NotifyTable,
            Meta(description="a table with `command` and, optionally, `events` (event names) and `timeout_seconds`"),
        ]
        | UnsetType
    ) = UNSET
    include: Annotated[tuple[str, ...], Meta(description="a list of paths")] = ()
    on_blocked: Annotated[OnBlocked, _choice(OnBlocked)] = "end"
    start_every_seconds: Grace = 0.0
    timeout_seconds: Seconds | UnsetType = UNSET
    halt: Annotated[Halt, _choice(Halt)] | UnsetType = UNSET
    answering: (
        Annotated[
            AnsweringTable, Meta(description="a table with `rules`, `command`, `timeout_seconds` or `per_task_max`")
        ]
        | UnsetType
    ) = UNSET


class WorkDocument(SettingsTable, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A task list, work.toml."""

    defaults: TaskDefaults = msgspec.field(default_factory=TaskDefaults)
    tasks: dict[str, TaskTable] = msgspec.field(default_factory=dict)


SETTINGS_TO_COME = frozenset({
    "trees",
})  # fmt: skip
KEYS_TO_COME = frozenset({
    "records", "isolation",
})  # fmt: skip
"""Keys of a task that have no meaning yet and are reserved for later versions."""

Kind = Literal["settings", "defaults", "task", "each", "infer"]
TABLES: dict[Kind, type[msgspec.Struct]] = {
    "settings": SettingsTable,
    "defaults": TaskDefaults,
    "task": TaskTable,
    "each": EachTable,
    "infer": InferTable,
}
TO_COME: dict[Kind, frozenset[str]] = {
    "settings": SETTINGS_TO_COME,
    "defaults": KEYS_TO_COME,
    "task": KEYS_TO_COME,
    "each": frozenset(),
    "infer": frozenset(),
}
