"""Conversion of task tables into commands and scheduling policies."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.model.text.markdown import make_slug
from codebatch.model.text.suggestions import closest_word
from codebatch.model.work.command import (
    COMMAND_BYTES_MAX,
    COMMAND_ID_PATTERN,
    Command,
    CommandId,
    EnvLayer,
    QuestionRule,
    ResultPointers,
    RetryChanges,
    RetryRule,
    encode_command,
)
from codebatch.model.work.placeholders import (
    ARGUMENT_BYTES_MAX,
    expand_arguments,
    is_outputs_name,
    longest_argument,
)
from codebatch.model.work.placeholders import PLACEHOLDER_NAMES as PLACEHOLDERS
from codebatch.model.work.work_batch import DEFAULT_POLICY, TaskPolicy
from codebatch.work.definition.environment import combine_layers, make_env_layer
from codebatch.work.definition.expansion import GroupExpander, GroupMember
from codebatch.work.definition.limits import check_task_limits, make_policy, task_has_cost
from codebatch.work.definition.problems import DefinitionProblems
from codebatch.work.definition.settings import BatchSettings, WorkOptions
from codebatch.work.definition.table_checks import ID_HINT, TableChecker, TableLocation, valid_part
from codebatch.work.definition.tables import SettingsTable, TaskDefaults, TaskTable, TryTable
from codebatch.work.definition.task_files import PROSE_NEEDS_KEYS
from codebatch.work.definition.work_files import TaskSource, WorkFile

FILES_CHARACTERS_MAX = 1_000_000
"""Maximum total number of characters in the file names of one group member.

On Linux, arguments and environment of a process together are usually limited to 2 MiB (execve(2)).
"""
_NEEDS_SHOWN_MAX = 5
_SHORT_COMMAND_CHARACTERS_MAX = COMMAND_BYTES_MAX // 12
"""Up to this length, a command is not too long, and need not be encoded to find out.

The longest JSON escape of a character has 6 bytes, and there is twice as much room.
"""


class DefinedTask(NamedTuple):
    """A task of a work file.

    If its table is invalid, `command` is None. The references to other tasks are set nevertheless, so that they are
    still checked. A member of a group has `group` and `key`, and its ID consists of both. `listed` are the patterns of
    the files for which members are created. `pair_values` are the values of placeholders in `needs` and `after`.
    """

    id: CommandId
    place: TableLocation
    needs: tuple[str, ...]
    after: tuple[str, ...]
    pools: Mapping[str, int]
    command: Command | None
    policy: TaskPolicy
    group: str = ""
    key: str = ""
    tags: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    title: str = ""
    listed: tuple[str, ...] = ()
    pair_values: Mapping[str, str] = MappingProxyType({})

    def expand_need(self, on: str) -> str:
        """Return a name in `needs` or `after` with the values of this member in place of placeholders.

        Raises PlaceholderError.
        """
        return expand_arguments([on], self.pair_values)[0]


class TaskDefiner:
    """A converter of the tasks of files into commands.

    Errors are added to `problems`, warnings and notes to those of `settings`. `groups` maps each group that was read
    so far to its members.
    """

    def __init__(
        self,
        problems: DefinitionProblems,
        checker: TableChecker,
        options: WorkOptions,
        expander: GroupExpander,
        settings: BatchSettings,
    ) -> None:
        self._problems = problems
        self._checker = checker
        self._options = options
        self._options_layer = EnvLayer(env=options.environment_table())
        self._expander = expander
        self._root = settings.root
        self._warnings, self._notes = settings.warnings, settings.notes
        self._defaults: dict[Path, Mapping[str, object]] = {}
        self._unknown: dict[str, dict[str, None]] = {}
        self.groups: dict[str, dict[str, CommandId]] = {}

    def iter_tasks(self, file: WorkFile, settings: SettingsTable) -> Iterator[DefinedTask]:
        """Yield the tasks of a file in file order. Errors are added to the problems."""
        defaults = self._file_defaults(file)
        layers = [*self._env_layers(file, "settings"), *self._env_layers(file, "defaults")]
        self._file_table(file, "tasks")
        for written in file.task_sources:
            if isinstance(written.table, dict):
                yield from self._defined_tasks(file, written, defaults, layers, settings)
            else:
                hint = f'write [tasks.{written.name}] and below it run = "…"'
                self._problems.add(f"{written.place.file_and_line}: the task {written.name!r} is not a table", hint)
                yield DefinedTask(CommandId(written.name), written.place, (), (), {}, None, DEFAULT_POLICY)

    def warn_about_unknown_keys(self) -> None:
        """Add a note for each unknown key in front matter, or a warning if it looks like a mistyped key.

        The text has the first file with the key, and the number of further files with it.
        """
        for key, files in self._unknown.items():
            more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
            suggestion = closest_word(key, (*TaskTable.__struct_fields__, *PROSE_NEEDS_KEYS))
            text = f"{next(iter(files))}{more}: unknown key {key!r} ignored"
            if suggestion is None:
                self._notes.append(text)
            else:
                self._warnings.append(f"{text}; did you mean {suggestion!r}?")

    def _file_defaults(self, file: WorkFile) -> Mapping[str, object]:
        """Return the default settings for the tasks of a file.

        Settings that the file does not set are taken from the file that includes it.
        """
        if file.path in self._defaults:
            return self._defaults[file.path]
        table = self._file_table(file, "defaults")
        if not self._checker.check(file.table_location("defaults", table=table), "defaults", table):
            table = valid_part(table, TaskDefaults)
        if file.included_by is not None:
            above = self._file_defaults(file.included_by)
            table = {**above, **table}
        if self._options.command is not None:
            table = {**table, "run": self._options.command}
        self._defaults[file.path] = table
        return table

    def _file_table(self, file: WorkFile, key: str) -> Mapping[str, object]:
        table = file.settings.get(key, {})
        if isinstance(table, dict):
            return table
        self._problems.add(
            f"{file.table_location().key_location(file.settings, key)} sets {key!r} to something that is not a table"
        )
        return {}

    def _env_layers(self, file: WorkFile, key: Literal["settings", "defaults"]) -> list[EnvLayer]:
        """Return the layers of environment variables for the tasks of a file, the lowest first.

        If the file is included by another file, the layers of that file come first.
        """
        above = [] if file.included_by is None else self._env_layers(file.included_by, key)
        table = file.settings if key == "settings" else file.settings.get("defaults", {})
        return [*above, make_env_layer(table, file, self._root)] if isinstance(table, dict) else above

    def _defined_tasks(
        self,
        file: WorkFile,
        written: TaskSource,
        defaults: Mapping[str, object],
        layers: Sequence[EnvLayer],
        settings: SettingsTable,
    ) -> Iterator[DefinedTask]:
        name, place, table = CommandId(written.name), written.place, written.table
        assert isinstance(table, dict)
        before = self._problems.count
        check_id(name, place, self._problems)
        if written.is_prose:
            table = self._without_unknown_keys(table, place)
        if not self._checker.check(place, "task", table):
            references = msgspec.convert(valid_part(table, TaskTable), TaskTable)
            if references.each is not UNSET or "each" in table:
                self.groups[name] = {}
            yield DefinedTask(name, place, references.needs, references.after, references.pools, None, DEFAULT_POLICY)
            return
        task = msgspec.convert({**defaults, **table}, TaskTable)
        if not task.run:
            hint = (
                "set `run` in the task or in [defaults]"
                if written.lines is None
                else "give the command with --command 'sh {line}'"
            )
            self._problems.add(f"{place.file_and_line}: the task {name!r} has no command to run", hint)
        under, env = combine_layers([*layers, make_env_layer(table, file, self._root), self._options_layer])
        command = _make_command(name, task, env, under, settings)
        check_task_limits(task, place, self._problems)
        policy = make_policy(task, self._retries_max(task, place), has_cost=task_has_cost(task))
        template = DefinedTask(
            name, place, task.needs, task.after, policy.pools, command, policy,
            tags=task.tags, inputs=task.inputs, outputs=task.outputs, title=task.title, listed=_member_patterns(task),
        )  # fmt: skip
        members = self._group_members(written, task)
        self._check_names(command, members, place)
        if members is None:
            if self._problems.count == before:
                self._check_size(command, place)
            yield template
            return
        self.groups[name] = {member.key: CommandId(f"{name}/{member.key}") for member in members}
        for member in members:
            member_task = self._member_task(template, command, member)
            if self._problems.count == before and member_task.command is not None:
                self._check_size(member_task.command, place)
            yield member_task

    def _without_unknown_keys(self, table: dict[str, object], place: TableLocation) -> dict[str, object]:
        """Remove unknown keys from front matter and record them for `note_unknown_keys`."""
        unknown = [key for key in table if key not in TaskTable.__struct_fields__]
        for key in unknown:
            self._unknown.setdefault(key, {})[place.file] = None
            del table[key]
        return table

    def _group_members(self, written: TaskSource, task: TaskTable) -> list[GroupMember] | None:
        """Return the members of a group. Return None if the task is not a group."""
        place = written.place
        if written.lines is not None:
            return self._expander.line_members(place, written.lines)
        if task.each is UNSET:
            return None
        members = self._expander.expand_members(place.nested_location("each", written.table), task.each, task.cwd)
        if not members:
            message = f"{place.file_and_line}: `each` of {written.name!r} matches nothing"
            if self._options.is_strict:
                self._problems.add(message, "to accept this, run without --strict")
            else:
                self._warnings.append(f"{message}, so the task is treated as done{_early_members_text(task.needs)}")
        return members

    def _check_names(self, command: Command, members: Sequence[GroupMember] | None, place: TableLocation) -> None:
        """Report placeholders in a command that have no value."""
        of_each = {name for name in command.placeholders() if name not in PLACEHOLDERS and not is_outputs_name(name)}
        for member in [None] if members is None else members:
            has = set() if member is None else {*member.values, *(["files"] if member.files else [])}
            for name in sorted(of_each - has):
                label = "" if member is None else f" for {member.label!r}"
                hint = f"placeholders: {', '.join(f'{{{name}}}' for name in (*PLACEHOLDERS, *sorted(has)))}"
                message = f"{place} uses {{{name}}}, which has no value{label}"
                self._problems.add(message, f"{hint}; other placeholders need `each`" if member is None else hint)
            if of_each - has:
                return

    def _member_task(self, template: DefinedTask, command: Command, member: GroupMember) -> DefinedTask:
        id_ = CommandId(f"{template.id}/{member.key}")
        title = f"{command.title}: {member.label}" if command.title else member.label
        inputs, outputs = member.expand_patterns(template.inputs), member.expand_patterns(template.outputs)
        member_command = msgspec.structs.replace(
            command,
            id=id_,
            title=title,
            values=dict(member.values),
            files=member.files,
            inputs=inputs if command.inputs else UNSET,
        )
        return template._replace(
            id=id_,
            command=member_command,
            group=template.id,
            key=member.key,
            inputs=inputs,
            outputs=outputs,
            pair_values=member.pair_values(),
        )

    def _retries_max(self, task: TaskTable, place: TableLocation) -> int:
        """Return the maximum number of retries of a task. Report contradictory settings."""
        retries = len(task.tries) if task.retries is UNSET else task.retries
        if retries < len(task.tries):
            message = f"{place} sets `retries` to {retries}, but has {len(task.tries)} entries in `tries`"
            self._problems.add(message, "remove `retries`, or entries of `tries`")
        if task.retry_if is not UNSET and task.retries is UNSET and not task.tries and self._options.retry is None:
            message = f"{place} sets `retry_if` without `retries`"
            self._problems.add(message, "set `retries`, for example to 3")
        if "interrupted" in task.retry_reasons and task.if_interrupted != "restart":
            message = f'{place} retries interrupted attempts, but sets `if_interrupted` to "{task.if_interrupted}"'
            self._problems.add(message, 'set if_interrupted = "restart" if the task may run twice')
        return retries if self._options.retry is None else self._options.retry

    def _check_size(self, command: Command, place: TableLocation) -> None:
        """Report a command that is too long, or has an argument or variable that is too long after expansion."""
        arguments = [command.run] if isinstance(command.run, str) else command.run
        environment = [f"{name}={value}" for env in command.environment_layers() for name, value in env.items()]
        written = len("".join(arguments)) + len("".join(environment))
        longest_value = max(map(len, (command.id, command.title, command.text, *command.values.values())))
        total = sum(map(len, command.files))
        if total > FILES_CHARACTERS_MAX:
            message = f"{place} has a task whose file names have {total:,} characters, more than"
            self._problems.add(f"{message} {FILES_CHARACTERS_MAX:,}", "use a smaller chunk")
        # This number is an upper bound: a placeholder has at least four characters, and a character at most four bytes.
        if written * (4 + longest_value) > ARGUMENT_BYTES_MAX:
            values = {"id": command.id, "title": command.title, "text": command.text, **command.values}
            longest = max(longest_argument(command.run, values), longest_argument(environment or [""], values))
            if longest > ARGUMENT_BYTES_MAX:
                message = (
                    f"{place} makes an argument or variable of {longest:,} bytes, more than {ARGUMENT_BYTES_MAX:,}"
                )
                self._problems.add(message, 'pass long texts by {text_file}, or by stdin = "text"')
        characters = written + len(command.title) + len(command.text) + len(command.stdin) + len(command.cwd)
        characters += total + sum(map(len, command.values.values()))
        if characters > _SHORT_COMMAND_CHARACTERS_MAX:
            size = len(encode_command(command))
            if size > COMMAND_BYTES_MAX:
                self._problems.add(f"{place} has {size:,} bytes, more than {COMMAND_BYTES_MAX:,}")


def _member_patterns(task: TaskTable) -> tuple[str, ...]:
    """Return the patterns of the files for which a task has members."""
    return () if task.each is UNSET or task.each.files is UNSET else task.each.files


def _early_members_text(needs: Sequence[str]) -> str:
    """Return a remark that the members of a group are determined before the tasks that it needs run.

    These tasks could still create files for further members. The remark is empty if the group needs no tasks.
    """
    more = " …" if len(needs) > _NEEDS_SHOWN_MAX else ""
    needs_text = f"{', '.join(needs[:_NEEDS_SHOWN_MAX])}{more}"
    return f"; its members are determined before these dependencies run: {needs_text}" if needs else ""


def _make_command(
    name: CommandId,
    task: TaskTable,
    env: dict[str, str],
    under: tuple[EnvLayer, ...] | UnsetType,
    settings: SettingsTable,
) -> Command:
    return Command(
        id=name,
        run=task.run,
        title=task.title,
        text=task.text,
        cwd=task.cwd,
        env=env,
        env_under=under,
        clean_env=settings.clean_env,
        secret=settings.secret or UNSET,
        stdin=task.stdin if task.stdin in ("none", "text") else f"file:{task.stdin}",
        exit_ok=task.exit_ok,
        timeout_seconds=None if task.timeout_seconds is UNSET else task.timeout_seconds,
        stall_seconds=None if task.stall_seconds is UNSET else task.stall_seconds,
        grace_seconds=task.grace_seconds,
        leftovers=task.leftovers,
        isolation=UNSET if task.isolation == "none" else task.isolation,
        memory_mb_max=None if task.memory_mb_max is UNSET else task.memory_mb_max,
        log_mb_max=task.log_mb_max,
        check=task.check,
        skip_status=task.skip_status,
        when=task.when or UNSET,
        when_timeout_seconds=task.when_timeout_seconds if task.when else UNSET,
        skip_if_unchanged=task.skip_if_unchanged or UNSET,
        inputs=task.inputs if task.skip_if_unchanged else UNSET,
        tries=tuple(_make_retry_changes(try_table) for try_table in task.tries),
        question=None if task.question is UNSET else msgspec.convert(msgspec.to_builtins(task.question), QuestionRule),
        retry_if=None if task.retry_if is UNSET else msgspec.convert(msgspec.to_builtins(task.retry_if), RetryRule),
        wait_if=task.wait_if if isinstance(task.wait_if, str) else task.wait_if.pattern,
        wait_exits=UNSET if isinstance(task.wait_if, str) else task.wait_if.exits or UNSET,
        result=None if task.result is UNSET else msgspec.convert(msgspec.to_builtins(task.result), ResultPointers),
    )


def _make_retry_changes(table: TryTable) -> RetryChanges:
    return RetryChanges(
        run=table.run,
        env=table.env,
        timeout_seconds=None if table.timeout_seconds is UNSET else table.timeout_seconds,
        text_suffix=table.text_suffix,
    )


def check_id(name: str, place: TableLocation, problems: DefinitionProblems) -> None:
    """Report a name that is not a valid task ID."""
    if COMMAND_ID_PATTERN.match(name) is None:
        problems.add(f"{place.file_and_line}: {name!r} is not a valid task id", lambda: _valid_id_hint(name))


def _valid_id_hint(name: str) -> str:
    changed = make_slug(name)
    return f"{ID_HINT}; for example {changed!r}" if COMMAND_ID_PATTERN.match(changed) else ID_HINT


def missing_program_notes(commands: Sequence[Command], path: str | None) -> list[str]:
    """Return a note for each program that is not on the PATH.

    Programs that are named with a directory are not checked. A missing program is not an error, because an earlier task
    may install it.
    """
    first: dict[str, CommandId] = {}
    for command in commands:
        if isinstance(command.run, tuple) and not command.env_under and "PATH" not in command.env:
            first.setdefault(command.run[0], command.id)
    return [
        f"{program!r}, which {command!r} runs, is not on the PATH"
        for program, command in first.items()
        if not {"/", "{"} & set(program) and shutil.which(program, path=path) is None
    ]
