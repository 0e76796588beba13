"""Keys of a work file and their types (SPEC.md "Work files").

The types also define the JSON schema of the file. The `description` of a type is shown in messages as the expected
value.
"""

from __future__ import annotations

import typing
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from codebatch.model.work.command import GRACE_SECONDS, LOG_MB_MAX, QUESTION_LINES, WHEN_SECONDS, LeftoverAction
from codebatch.model.work.limits import CapAction
from codebatch.model.work.trees import TreesKept
from codebatch.model.work.work_batch import (
    ANSWERING_SECONDS,
    BACKOFF_FACTOR,
    BACKOFF_SECONDS,
    BACKOFF_SECONDS_MAX,
    COMMANDS_MAX,
    NOTIFIED_EVENTS_DEFAULT,
    NOTIFY_SECONDS,
    RESTARTS_MAX,
    RETRIES_MAX,
    RETRY_REASONS,
    WAITS_MAX,
    BlockedAction,
    EventName,
    FailureAction,
    HaltMode,
    InterruptedAction,
    RetryReason,
    Strategy,
    TroubleAction,
)

SECONDS_MAX = 1_000_000_000
INTEGER_MAX = 1_000_000
EXIT_STATUS_MAX = 255
BACKOFF_FACTOR_MAX = 1_000

IsolationValue = Literal["none", "worktree", "copy"]
"""The isolation of a task. `none`: the task works in the root."""

TextValue = Annotated[str, Meta(description="a string")]
FileNameValue = Annotated[str, Meta(min_length=1, description="a file path")]
_CHUNK_DESCRIPTION = f'an integer from 1 to {INTEGER_MAX:,}, or "all"'
TextList = Annotated[tuple[str, ...], Meta(description="a list of strings")]
PatternTexts = Annotated[tuple[str, ...], Meta(description="a list of patterns")]
TaskIdList = Annotated[tuple[str, ...], Meta(description="a list of task IDs")]
BooleanValue = Annotated[bool, Meta(description="true or false")]
PositiveInteger = Annotated[int, Meta(ge=1, le=INTEGER_MAX, description=f"an integer from 1 to {INTEGER_MAX:,}")]
RestartCount = Annotated[int, Meta(ge=0, le=INTEGER_MAX, description=f"an integer from 0 to {INTEGER_MAX:,}")]
PriorityValue = Annotated[
    int, Meta(ge=-INTEGER_MAX, le=INTEGER_MAX, description=f"an integer from -{INTEGER_MAX:,} to {INTEGER_MAX:,}")
]
ExitStatus = Annotated[int, Meta(ge=0, le=EXIT_STATUS_MAX)]
PositiveSeconds = Annotated[
    float, Meta(gt=0, le=SECONDS_MAX, description=f"a number above 0 and at most {SECONDS_MAX:,}")
]
NonnegativeSeconds = Annotated[float, Meta(ge=0, le=SECONDS_MAX, description=f"a number from 0 to {SECONDS_MAX:,}")]
EnvironmentTable = Annotated[dict[str, str], Meta(description="a table of strings")]
PoolTable = Annotated[
    dict[str, Annotated[int, Meta(ge=1, le=INTEGER_MAX)]],
    Meta(description=f"a table of integers from 1 to {INTEGER_MAX:,}"),
]
HoursValue = Annotated[str, Meta(min_length=1, description='hours such as "22:00-08:00"')]
ZoneValue = Annotated[str, Meta(min_length=1, description='a time zone such as "Europe/Berlin"')]
CostCap = Annotated[float, Meta(gt=0, le=SECONDS_MAX, description=f"a number above 0 and at most {SECONDS_MAX:,}")]


class PoolSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pool with its size and limits of its tasks."""

    size: Annotated[int, Meta(ge=1, le=INTEGER_MAX)]
    cost_max: CostCap | UnsetType = UNSET
    attempts_max: PositiveInteger | UnsetType = UNSET
    hours: HoursValue = ""


PoolSettingsTable = Annotated[
    dict[str, Annotated[int, Meta(ge=1, le=INTEGER_MAX)] | PoolSettings],
    Meta(description="a table of sizes, or of tables with `size`, `cost_max`, `attempts_max` or `hours`"),
]


def _choice_description(kind: object) -> Meta:
    """Return the description of a choice between words, for example `"a", "b" or "c"`."""
    *words, last = (f'"{word}"' for word in typing.get_args(kind))
    return Meta(description=f"{', '.join(words)} or {last}")


ExitStatusList = Annotated[
    tuple[ExitStatus, ...], Meta(min_length=1, description=f"a list of integers from 0 to {EXIT_STATUS_MAX}")
]
JsonPointer = Annotated[str, Meta(pattern="^(/.*)?$")]


class TryTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of `tries`: changes to the task for a retry."""

    run: str | Annotated[tuple[str, ...], Meta(min_length=1)] = ""
    env: dict[str, str] = msgspec.field(default_factory=dict)
    timeout_seconds: PositiveSeconds | UnsetType = UNSET
    text_suffix: str = ""


class QuestionTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`question`: how a question is found at the end of the output of a task."""

    pattern: str = ""
    last_lines: Annotated[int, Meta(ge=1, le=1000)] = QUESTION_LINES
    exits: tuple[ExitStatus, ...] = ()


class RetryTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`retry_if`: the failures after which a task is retried."""

    exits: tuple[ExitStatus, ...] = ()
    pattern: str = ""


class WaitTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`wait_if`: a pattern of rate limits. After `exits`, the output is searched although the task succeeded."""

    pattern: Annotated[str, Meta(min_length=1)]
    exits: tuple[ExitStatus, ...] = ()


class ResultTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`result`: JSON pointers into the last JSON object of a task's output."""

    text: JsonPointer = ""
    question: JsonPointer = ""
    cost: JsonPointer = ""
    session: JsonPointer = ""


class RuleTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of `[[answering.rules]]`: an automatic answer to matching questions."""

    match: Annotated[str, Meta(min_length=1)]
    answer: str = ""
    human: bool = False


class AnsweringTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[answering]`: automatic answers to questions, before a person is asked."""

    rules: tuple[RuleTable, ...] = ()
    command: str | tuple[str, ...] = ""
    timeout_seconds: PositiveSeconds = ANSWERING_SECONDS
    per_task_max: PositiveInteger = 1


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
    title: TextValue = ""
    text: TextValue = ""
    cwd: Annotated[str, Meta(description="a path below `root`")] = "."
    env: EnvironmentTable = msgspec.field(default_factory=dict)
    env_file: EnvFileEntries = ()
    stdin: Annotated[str, Meta(min_length=1, description='"none", "text" or the path of a file')] = "none"
    priority: PriorityValue = 0
    pools: PoolTable = msgspec.field(default_factory=dict)
    exclusive: BooleanValue = False
    exit_ok: ExitStatusList = (0,)
    skip_status: Annotated[int, Meta(ge=1, le=255, description="an integer from 1 to 255")] | UnsetType = UNSET
    when: Annotated[str | tuple[str, ...], Meta(description="a string, or a list of strings")] = ""
    when_timeout_seconds: PositiveSeconds = WHEN_SECONDS
    cost_max: CostCap | UnsetType = UNSET
    attempts_max: PositiveInteger | UnsetType = UNSET
    timeout_seconds: PositiveSeconds | UnsetType = UNSET
    stall_seconds: PositiveSeconds | UnsetType = UNSET
    grace_seconds: NonnegativeSeconds = GRACE_SECONDS
    if_interrupted: Annotated[InterruptedAction, _choice_description(InterruptedAction)] = "restart"
    restarts_max: RestartCount = RESTARTS_MAX
    expected_seconds: PositiveSeconds | UnsetType = UNSET
    leftovers: Annotated[LeftoverAction, _choice_description(LeftoverAction)] = "kill"
    isolation: Annotated[IsolationValue, _choice_description(IsolationValue)] = "none"
    memory_mb_max: PositiveInteger | UnsetType = UNSET
    log_mb_max: PositiveInteger = LOG_MB_MAX
    inputs: PatternTexts = ()
    outputs: PatternTexts = ()
    skip_if_unchanged: BooleanValue = False
    tags: TextList = ()
    check: Annotated[str | tuple[str, ...], Meta(description="a string, or a list of strings")] = ""
    retries: (
        Annotated[int, Meta(ge=0, le=RETRIES_MAX, description=f"an integer from 0 to {RETRIES_MAX}")] | UnsetType
    ) = UNSET
    backoff_seconds: NonnegativeSeconds = BACKOFF_SECONDS
    backoff_factor: Annotated[
        float, Meta(ge=1, le=BACKOFF_FACTOR_MAX, description=f"a number from 1 to {BACKOFF_FACTOR_MAX}")
    ] = BACKOFF_FACTOR
    backoff_seconds_max: NonnegativeSeconds = BACKOFF_SECONDS_MAX
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
    wait_if: Annotated[
        str | WaitTable, Meta(description="a regular expression, or a table with `pattern` and `exits`")
    ] = ""
    waits_max: RestartCount = WAITS_MAX
    wait_seconds_max: PositiveSeconds | UnsetType = UNSET
    on_exhausted: Annotated[TroubleAction, _choice_description(TroubleAction)] = "fail"
    on_stall: Annotated[TroubleAction, _choice_description(TroubleAction)] = "fail"
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

    files: PatternTexts | UnsetType = UNSET
    chunk: Annotated[
        Annotated[int, Meta(ge=1, le=INTEGER_MAX)] | Literal["all"], Meta(description=_CHUNK_DESCRIPTION)
    ] = 1
    values: TextList | UnsetType = UNSET
    matrix: Annotated[dict[str, tuple[str, ...]], Meta(description="a table of lists of strings")] | UnsetType = UNSET
    lines: FileNameValue | UnsetType = UNSET
    json: FileNameValue | UnsetType = UNSET


class InferTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`infer`: a command that prints dependencies between tasks. It is used with `strategy = "auto"`."""

    command: Annotated[tuple[str, ...], Meta(min_length=1, description="a list of strings that is not empty")]
    timeout_seconds: PositiveSeconds = 120.0


class TaskTable(TaskDefaults, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[tasks.ID]`: a command and its dependencies."""

    needs: TaskIdList = ()
    after: TaskIdList = ()
    each: (
        Annotated[EachTable, Meta(description="a table with `files`, `values`, `matrix`, `lines` or `json`")]
        | UnsetType
    ) = UNSET


class TreesTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[trees]`: the trees of isolated tasks. An empty `directory` means the directory of caches."""

    directory: Annotated[str, Meta(description="the path of a directory")] = ""
    link: Annotated[tuple[str, ...], Meta(description="a list of paths below `root`")] = ()
    keep: Annotated[TreesKept, _choice_description(TreesKept)] = "failed"


class NotifyTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[notify]`: a command that receives events as JSON on its standard input."""

    command: Annotated[
        Annotated[str, Meta(min_length=1)] | Annotated[tuple[str, ...], Meta(min_length=1)],
        Meta(description="a command, as text or a list"),
    ]
    events: Annotated[
        tuple[EventName, ...],
        Meta(description=f"a list of names of events: {', '.join(typing.get_args(EventName))}"),
    ] = NOTIFIED_EVENTS_DEFAULT
    timeout_seconds: PositiveSeconds = NOTIFY_SECONDS


class SettingsTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a task list that apply to all its tasks."""

    strategy: Annotated[Strategy, _choice_description(Strategy)] | UnsetType = UNSET
    max_parallel: PositiveInteger | UnsetType = UNSET
    on_failure: Annotated[FailureAction, _choice_description(FailureAction)] = "skip-dependents"
    failures_max: Annotated[int, Meta(ge=1, le=COMMANDS_MAX, description=f"an integer from 1 to {COMMANDS_MAX:,}")] = 1
    cost_max: CostCap | UnsetType = UNSET
    attempts_max: PositiveInteger | UnsetType = UNSET
    cost_unit: TextValue = ""
    deadline: TextValue = ""
    hours: HoursValue = ""
    zone: ZoneValue = ""
    on_cap: Annotated[CapAction, _choice_description(CapAction)] = "stop"
    pools: PoolSettingsTable = msgspec.field(default_factory=dict)
    env: EnvironmentTable = msgspec.field(default_factory=dict)
    env_file: EnvFileEntries = ()
    clean_env: BooleanValue = False
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
    secret: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...], Meta(description="a list of names of variables")
    ] = ()
    on_blocked: Annotated[BlockedAction, _choice_description(BlockedAction)] = "end"
    start_every_seconds: NonnegativeSeconds = 0.0
    timeout_seconds: PositiveSeconds | UnsetType = UNSET
    halt: Annotated[HaltMode, _choice_description(HaltMode)] | UnsetType = UNSET
    trees: Annotated[TreesTable, Meta(description="a table with `directory`, `link` or `keep`")] | UnsetType = UNSET
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


TableKind = Literal["settings", "defaults", "task", "each", "infer", "notify", "trees"]
TABLE_TYPES: dict[TableKind, type[msgspec.Struct]] = {
    "settings": SettingsTable,
    "defaults": TaskDefaults,
    "task": TaskTable,
    "each": EachTable,
    "infer": InferTable,
    "notify": NotifyTable,
    "trees": TreesTable,
}
