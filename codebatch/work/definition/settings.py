"""Settings of a batch. Options of the command line override files, and the first file overrides the other files."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.errors import InvalidInput
from codebatch.model.work.limits import NO_LIMITS, WorkLimits
from codebatch.model.work.work_batch import (
    CONFIDENCE_MIN,
    RETRIES_MAX,
    AnsweringPolicy,
    BlockedAction,
    FailureAction,
    HaltMode,
    NotifySettings,
    Strategy,
)
from codebatch.system.host import usable_cores
from codebatch.work.definition.limits import make_limits, pool_sizes
from codebatch.work.definition.problems import DefinitionProblems
from codebatch.work.definition.table_checks import TableChecker, TableLocation, check_pattern, valid_part
from codebatch.work.definition.tables import (
    INTEGER_MAX,
    SECONDS_MAX,
    AnsweringTable,
    InferTable,
    SettingsTable,
    TreesTable,
)
from codebatch.work.definition.work_files import WorkFile

DEFAULT_PARALLEL_MAX = 8
"""Default maximum number of commands that run at the same time."""

_TASK_TABLES = frozenset({"defaults", "tasks"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkOptions:
    """Options of the command line or of a calling program. None: the setting of the files applies.

    - `env`: `NAME=VALUE`, which is stored in the batch, or `NAME`, whose value is taken from the runner's environment.
    - `tasks`, `tags`: select these tasks and, without `only`, all tasks that they need.
    - `unfinished`: select tasks that no batch of the list has completed with their current definitions.
    - `blocked`: select tasks that wait for an answer.
    - `of`: apply `unfinished` and `blocked` only to this batch.
    - `command`: the command of tasks that define none.
    - `each_line`: each line of a file is a task.
    - `is_strict`: a group without members is an error.
    - `infer`, `infer_command`: if False, `auto` infers no dependencies, or does not run the `infer` command.
    - `retry`: number of retries of every task.
    - `timeout`: time limit of the whole batch, in seconds.
    - `halt`: stop at a failure and terminate running tasks (`now`), or let running tasks finish (`soon`).
    - `at_ns`: no task starts before this time, in ns since 1970.
    """

    max_parallel: int | None = None
    strategy: Strategy | None = None
    on_failure: FailureAction | None = None
    failures_max: int | None = None
    env: Sequence[str] = ()
    tasks: Sequence[str] = ()
    only: bool = False
    tags: Sequence[str] = ()
    unfinished: bool = False
    blocked: bool = False
    of: str | None = None
    command: str | None = None
    each_line: bool = False
    is_recursive: bool = False
    is_strict: bool = False
    infer: bool = True
    infer_confidence: float = CONFIDENCE_MIN
    infer_command: bool = True
    retry: int | None = None
    wait_answers: bool = False
    timeout: float | None = None
    halt: HaltMode | None = None
    at_ns: int = 0

    def __post_init__(self) -> None:
        """Raise InvalidInput if a value is out of range or options contradict each other."""
        for name in ("max_parallel", "failures_max"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= INTEGER_MAX:
                raise InvalidInput(f"{name} must be from 1 to {INTEGER_MAX:,}, not {value}")
        if self.retry is not None and not 0 <= self.retry <= RETRIES_MAX:
            raise InvalidInput(f"retry must be from 0 to {RETRIES_MAX}, not {self.retry}")
        if self.timeout is not None and not 0 < self.timeout <= SECONDS_MAX:
            raise InvalidInput(f"timeout must be above 0 and at most {SECONDS_MAX:,} seconds, not {self.timeout:g}")
        if self.only and not (self.tasks or self.tags):
            raise InvalidInput("--only needs tasks or tags", hint="give the tasks as arguments, or tags with --tag")
        if not 0 <= self.infer_confidence <= 1:
            raise InvalidInput(f"infer_confidence must be from 0 to 1, not {self.infer_confidence}")
        if self.of is not None and not self.uses_previous_batches:
            raise InvalidInput("--of needs --unfinished or --blocked", hint="add --unfinished or --blocked")

    @property
    def uses_previous_batches(self) -> bool:
        """Whether the outcomes of earlier batches affect which tasks are selected."""
        return self.unfinished or self.blocked

    def changed_options(self) -> dict[str, object]:
        """Return the options that differ from the defaults, as JSON values. `msgspec.convert` converts them back."""
        defaults = msgspec.to_builtins(WorkOptions())
        return {name: value for name, value in msgspec.to_builtins(self).items() if value != defaults[name]}

    def environment_table(self) -> dict[str, str]:
        """Return the variables of `env` as a work file would define them: `NAME` alone becomes `$NAME`."""
        pairs = (entry.partition("=") for entry in self.env)
        return {name: value if is_set else f"${name}" for name, is_set, value in pairs}


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """The settings of a batch after all overrides.

    `warnings` say what was left out, ignored or replaced by a default. `notes` are other remarks.
    """

    root: Path
    strategy: Strategy
    max_parallel: int
    on_failure: FailureAction
    failures_max: int
    pools: Mapping[str, int]
    notify: NotifySettings | None = None
    infer: InferTable | None = None
    on_blocked: BlockedAction = "end"
    answering: AnsweringPolicy | None = None
    start_every_seconds: float = 0.0
    timeout_seconds: float | None = None
    halt: HaltMode = "soon"
    trees: TreesTable | UnsetType = UNSET
    limits: WorkLimits = NO_LIMITS
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def merge_batch_settings(
    files: Sequence[WorkFile], options: WorkOptions, checker: TableChecker, problems: DefinitionProblems, cwd: Path
) -> tuple[BatchSettings, list[SettingsTable]]:
    """Return the settings of the batch, and the settings of each file.

    Of the latter, only `clean_env` and `secret` are used.

    Errors are added to `problems`, and invalid settings are replaced by defaults.
    """
    tables = _settings_tables(files, checker)
    if options.env:
        checker.check_environment(TableLocation("--env", ""), options.environment_table())
    first, notes = tables[0], []
    pools = {name: size for table in reversed(tables) for name, size in pool_sizes(table.pools).items()}
    # A file without settings has no root of its own. The root is then the current directory.
    homes = [file.path.parent if file.document is not None else cwd for file in files]
    # No path contains NUL. With another character in its place, the root is not a directory either.
    paths = [table.root.replace("\0", "\ufffd") for table in tables]
    roots = [Path(os.path.realpath(home / path)) for home, path in zip(homes, paths, strict=True)]
    if not roots[0].is_dir():
        place = files[0].table_location().key_location(files[0].settings, "root")
        problems.add(f"{place} sets `root` to {first.root!r}, which is not a directory")
    for file, root in zip(files[1:], roots[1:], strict=True):
        if root != roots[0] and file.document is not None and file.included_by is None:
            notes.append(
                f"the tasks of {file.name} run in {roots[0]}, because `root` of {files[0].name} applies to all tasks"
            )
    strategy, max_parallel = _parallel_settings(first, options, files[0].name, notes)
    on_failure, halt = _failure_settings(first, options, files[0], problems)
    failures_max = options.failures_max or first.failures_max
    if failures_max != 1 and on_failure != "stop":
        notes.append(f"`failures_max` is {failures_max}, but has no effect: `on_failure` is {on_failure!r}")
    if any("=" in each for each in options.env):
        notes.append(
            "values set with --env NAME=VALUE are stored in the batch; with --env NAME, each run takes the value "
            "from your environment, and does not store the value"
        )
    infer = None if first.infer is UNSET else first.infer
    if infer is not None and strategy != "auto":
        notes.append(f"the `infer` command is not run: `strategy` is {strategy!r}")
    answering = (
        None
        if first.answering is UNSET
        else _make_answering(first.answering, files[0].table_location("answering"), problems)
    )
    settings = BatchSettings(
        roots[0],
        strategy,
        max_parallel,
        on_failure,
        failures_max,
        pools,
        notify=_make_notify(first),
        infer=infer,
        on_blocked="wait" if options.wait_answers else first.on_blocked,
        answering=answering,
        start_every_seconds=first.start_every_seconds,
        timeout_seconds=options.timeout or (None if first.timeout_seconds is UNSET else first.timeout_seconds),
        halt=halt,
        trees=first.trees,
        limits=make_limits(tables, options.at_ns, files[0].table_location(), problems),
        notes=notes,
    )
    return settings, tables


def _failure_settings(
    first: SettingsTable, options: WorkOptions, file: WorkFile, problems: DefinitionProblems
) -> tuple[FailureAction, HaltMode]:
    """Return the settings that apply after a failure: `on_failure`, and `halt`, which is about running tasks.

    If `halt` is set, `on_failure` is "stop".
    """
    halt = options.halt or (None if first.halt is UNSET else first.halt)
    if options.on_failure is not None:
        on_failure, is_contradicted = msgspec.convert(options.on_failure, FailureAction), options.halt is not None
    else:
        on_failure, is_contradicted = first.on_failure, options.halt is None and "on_failure" in file.settings
    if on_failure == "stop" or halt is None:
        return on_failure, halt or "soon"
    if is_contradicted:
        where = (
            "--halt"
            if options.halt is not None
            else f"{file.table_location().key_location(file.settings, 'halt')}: `halt`"
        )
        message = f"{where} is {halt!r}, but `on_failure` is {on_failure!r}: nothing stops at a failure"
        problems.add(message, 'set `on_failure` to "stop", or remove it')
    return (on_failure, "soon") if options.on_failure is not None else ("stop", halt)


def _make_notify(first: SettingsTable) -> NotifySettings | None:
    table = first.notify
    return (
        None
        if table is UNSET
        else NotifySettings(command=table.command, events=table.events, timeout_seconds=table.timeout_seconds)
    )


def _settings_tables(files: Sequence[WorkFile], checker: TableChecker) -> list[SettingsTable]:
    """Return the settings of each file.

    If an included file does not set `clean_env`, the value of the including file is used. Variables that are secret in
    the including file are also secret in the included file.
    """
    tables: dict[int, SettingsTable] = {}
    for file in files:
        table = _settings_table(file, checker)
        if file.included_by is not None:
            above = tables[id(file.included_by)]
            clean = table.clean_env if "clean_env" in file.settings else above.clean_env
            table = msgspec.structs.replace(table, clean_env=clean, secret=above.secret + table.secret)
        tables[id(file)] = table
    return [*tables.values()]


def _settings_table(file: WorkFile, checker: TableChecker) -> SettingsTable:
    document = copy.copy(file.settings) if isinstance(file.settings, dict) else {}
    for key in _TASK_TABLES:
        document.pop(key, None)
    is_sound = checker.check(file.table_location(), "settings", document)
    return msgspec.convert(document if is_sound else valid_part(document, SettingsTable), SettingsTable)


def _parallel_settings(first: SettingsTable, options: WorkOptions, name: str, notes: list[str]) -> tuple[Strategy, int]:
    """Return the strategy and the maximum number of commands that run at once."""
    limit = options.max_parallel or (None if first.max_parallel is UNSET else first.max_parallel)
    strategy = options.strategy or (None if first.strategy is UNSET else first.strategy)
    if strategy is None:
        strategy = "parallel" if (limit or 1) > 1 else "serial"
    if strategy in ("parallel", "auto"):
        return strategy, limit or min(usable_cores(), DEFAULT_PARALLEL_MAX)
    if options.strategy is None and (options.max_parallel or 1) > 1:
        notes.append(f'{name} sets strategy = "serial": tasks run one at a time; override with --strategy parallel')
    return strategy, 1


def _make_answering(table: AnsweringTable, place: object, problems: DefinitionProblems) -> AnsweringPolicy:
    """Convert the table `[answering]`. Errors are added to the problems."""
    for number, rule in enumerate(table.rules, start=1):
        where = f"{place}, rule {number}"
        check_pattern(rule.match, where, problems)
        if bool(rule.answer) == rule.human:
            problems.add(f"{where} needs an answer, or human = true")
    if not table.rules and not table.command:
        problems.add(f"{place} has neither `rules` nor `command`", "set `rules` or `command`")
    return msgspec.convert(msgspec.to_builtins(table), AnsweringPolicy)
