"""Tables of tasks, made into commands and what the scheduler looks at."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from codebatch.model.command import (
    COMMAND_BYTES_MAX,
    COMMAND_ID_PATTERN,
    Command,
    CommandId,
    QuestionRule,
    ResultPointers,
    Try,
    encode_command,
)
from codebatch.model.placeholders import ARGUMENT_BYTES_MAX, longest_argument
from codebatch.model.work import NO_POLICY, RETRY_REASONS, Policy
from codebatch.work.checking import ID_HINT, Place, TableChecker, sound_part
from codebatch.work.files import WorkFile
from codebatch.work.problems import Problems
from codebatch.work.settings import WorkOptions
from codebatch.work.tables import SettingsTable, TaskDefaults, TaskTable, TryTable

_NO_ID = re.compile(r"[^A-Za-z0-9._-]+")
_BYTES_OF_A_CHARACTER_MAX = 6
"""As JSON."""


class Task(NamedTuple):
    """A task of a file. What it says of others is told even where it is unsound otherwise, and has no command."""

    id: CommandId
    place: Place
    needs: tuple[str, ...]
    after: tuple[str, ...]
    pools: Mapping[str, int]
    command: Command | None
    policy: Policy


class Definer:
    """Makes commands of the tasks of files, and tells what is wrong with them."""

    def __init__(self, problems: Problems, checker: TableChecker, options: WorkOptions) -> None:
        self._problems = problems
        self._checker = checker
        self._options = options
        self._options_env = options.environment()

    def tasks(self, file: WorkFile, settings: SettingsTable) -> Iterator[Task]:
        """The tasks of a file in its order."""
        defaults = self._tables(file, "defaults")
        if not self._checker.check(file.place("defaults"), "defaults", defaults):
            defaults = sound_part(defaults, TaskDefaults)
        for name, table in self._tables(file, "tasks").items():
            place = file.place("tasks", name)
            if isinstance(table, dict):
                yield self._task(CommandId(name), place, table, defaults, settings)
            else:
                hint = f'write it so: [tasks.{name}] and below that run = "…"'
                self._problems.add(f"{place.file}: the task {name!r} is no table", hint)
                yield Task(CommandId(name), place, (), (), {}, None, NO_POLICY)

    def _tables(self, file: WorkFile, key: str) -> Mapping[str, object]:
        tables = file.document.get(key, {})
        if isinstance(tables, dict):
            return tables
        self._problems.add(f"{file.place()} sets {key!r} to what is no table")
        return {}

    def _task(
        self,
        name: CommandId,
        place: Place,
        table: dict[str, object],
        defaults: Mapping[str, object],
        settings: SettingsTable,
    ) -> Task:
        before = self._problems.count
        if COMMAND_ID_PATTERN.match(name) is None:
            self._problems.add(f"{place.file}: {name!r} is no id of a task", lambda: _id_hint(name))
        if not self._checker.check(place, "task", table):
            told = msgspec.convert(sound_part(table, TaskTable), TaskTable)
            return Task(name, place, told.needs, told.after, told.pools, None, NO_POLICY)
        task = msgspec.convert({**defaults, **table}, TaskTable)
        if not task.run:
            hint = "set `run`, or [defaults] run"
            self._problems.add(f"{place.file}: the task {name!r} has nothing to run", hint)
        env = {**settings.env, **_environment(defaults), **_environment(table), **self._options_env}
        command = _command(name, task, env, settings)
        if self._problems.count == before:
            self._check_size(command, place)
        retries = self._retries(task, place)
        policy = _policy(task, retries)
        return Task(name, place, task.needs, task.after, policy.pools, command, policy)

    def _retries(self, task: TaskTable, place: Place) -> int:
        """How often it is tried again, and what is wrong with that."""
        retries = len(task.tries) if task.retries is UNSET else task.retries
        if retries < len(task.tries):
            told = f"{place} sets retries to {retries}, and has {len(task.tries)} tries that differ from the first"
            self._problems.add(told, "leave `retries` out, or some of `tries`")
        if "interrupted" in task.retry_reasons and task.if_interrupted != "restart":
            told = f'{place} retries what was interrupted, and sets if_interrupted to "{task.if_interrupted}"'
            self._problems.add(told, 'which says that it must not run twice: set if_interrupted = "restart"')
        return retries if self._options.retry is None else self._options.retry

    def _check_size(self, command: Command, place: Place) -> None:
        """Tell where a command is longer than it may be, or makes what is longer than an argument may be."""
        arguments = [command.run] if isinstance(command.run, str) else command.run
        environment = [f"{name}={value}" for name, value in command.env.items()]
        written = len("".join(arguments)) + len("".join(environment))
        longest_value = max(len(command.id), len(command.title), len(command.text))
        # Each placeholder has four characters, each character at most four bytes.
        if written * (4 + longest_value) > ARGUMENT_BYTES_MAX:
            values = {"id": command.id, "title": command.title, "text": command.text}
            longest = max(longest_argument(command.run, values), longest_argument(environment or [""], values))
            if longest > ARGUMENT_BYTES_MAX:
                told = f"{place} makes an argument or a variable of {longest:,} bytes, and may {ARGUMENT_BYTES_MAX:,}"
                self._problems.add(told, 'long texts stand in {text_file}, or come by stdin = "text"')
        characters = written + len(command.title) + len(command.text) + len(command.stdin) + len(command.cwd)
        if characters * _BYTES_OF_A_CHARACTER_MAX > COMMAND_BYTES_MAX // 2:
            size = len(encode_command(command))
            if size > COMMAND_BYTES_MAX:
                self._problems.add(f"{place} has {size:,} bytes, and may have {COMMAND_BYTES_MAX:,}")


def _environment(table: Mapping[str, object]) -> dict[str, str]:
    return msgspec.convert(table.get("env", {}), dict[str, str])


def _command(name: CommandId, task: TaskTable, env: dict[str, str], settings: SettingsTable) -> Command:
    return Command(
        id=name,
        run=task.run,
        title=task.title,
        text=task.text,
        cwd=task.cwd,
        env=env,
        clean_env=settings.clean_env,
        stdin=task.stdin if task.stdin in ("none", "text") else f"file:{task.stdin}",
        exit_ok=task.exit_ok,
        timeout_seconds=None if task.timeout_seconds is UNSET else task.timeout_seconds,
        stall_seconds=None if task.stall_seconds is UNSET else task.stall_seconds,
        grace_seconds=task.grace_seconds,
        leftovers=task.leftovers,
        memory_mb_max=None if task.memory_mb_max is UNSET else task.memory_mb_max,
        log_mb_max=task.log_mb_max,
        check=task.check,
        tries=tuple(_try(each) for each in task.tries),
        question=None if task.question is UNSET else msgspec.convert(msgspec.to_builtins(task.question), QuestionRule),
        result=None if task.result is UNSET else msgspec.convert(msgspec.to_builtins(task.result), ResultPointers),
    )


def _try(table: TryTable) -> Try:
    return Try(
        run=table.run,
        env=table.env,
        timeout_seconds=None if table.timeout_seconds is UNSET else table.timeout_seconds,
        text_suffix=table.text_suffix,
    )


def _policy(task: TaskTable, retries: int) -> Policy:
    policy = Policy(
        priority=task.priority,
        pools=task.pools,
        exclusive=task.exclusive,
        if_interrupted=task.if_interrupted,
        restarts_max=task.restarts_max,
        retries=retries,
        backoff_seconds=task.backoff_seconds,
        backoff_factor=task.backoff_factor,
        backoff_seconds_max=task.backoff_seconds_max,
        retry_reasons=RETRY_REASONS if task.retry_reasons == RETRY_REASONS else task.retry_reasons,
        on_exhausted=task.on_exhausted,
        on_stall=task.on_stall,
    )
    return NO_POLICY if policy == NO_POLICY else policy


def _id_hint(name: str) -> str:
    changed = _NO_ID.sub("-", name).strip("-._")[:100].lower()
    return f"{ID_HINT}: {changed!r}, for example" if COMMAND_ID_PATTERN.match(changed) else ID_HINT


def programs_not_found(commands: Sequence[Command], path: str | None) -> list[str]:
    """A note of each program, of those named without a directory, that is not on the PATH: one may come to be."""
    first: dict[str, CommandId] = {}
    for command in commands:
        if isinstance(command.run, tuple) and "PATH" not in command.env:
            first.setdefault(command.run[0], command.id)
    return [
        f"{program!r}, which {command!r} runs, is not on the PATH"
        for program, command in first.items()
        if not {"/", "{"} & set(program) and shutil.which(program, path=path) is None
    ]
