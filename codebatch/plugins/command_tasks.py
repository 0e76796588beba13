"""Tasks that call a program: `command = […]` under `[tasks.NAME]` of the configuration (SPEC.md "Command tasks").

Only the configuration of the current project supplies a command: neither a plan nor a store nor an analysed tree does.
The coordinator looks the program up once, on the user's PATH, and asks it for its version. Workers get the result. A
plan contains only a digest of it, so a worker rejects a plan that was made with another table or program.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from codebatch.errors import InvalidConfiguration
from codebatch.model.analysis.report_formats import parse_report_format
from codebatch.model.command_table import (
    DEFAULT_CALL_SECONDS_MAX,
    EXIT_RECORDS,
    CommandConfig,
    CommandTable,
    CommandTaskLocation,
    config_files_context_name,
)
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.entry import Entry
from codebatch.model.gitignore import parse_arguments
from codebatch.model.program_call import ProgramCall, ProgramFailed
from codebatch.model.task import TASK_NAME_PATTERN, ContextFactory, JsonValue, SnapshotView, TaskDeclaration
from codebatch.model.text.suggestions import did_you_mean_text
from codebatch.model.tree_links import resolve_link
from codebatch.plugins.command_inputs import read_command_inputs
from codebatch.protocol.launch import program_environment
from codebatch.system.files.regular_files import read_regular
from codebatch.system.processes.environment import program_directories
from codebatch.system.processes.processes import killing_orphans
from codebatch.system.processes.programs import run_program

VERSION_SECONDS_MAX = 10.0
_VERSION_BYTES_MAX = 1 << 20
_LOCK_BYTES_MAX = 256 << 20
_OUTPUT_CHARACTERS_MAX = 500
_VERSION_ARGUMENT = "--version"
_VERSION_NUMBER = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")
# In the files of the call, which have no `.git`, git must not take an analysed directory for a repository.
_GIT_VARIABLES = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.bareRepository",
    "GIT_CONFIG_VALUE_0": "explicit",
}
_CONFIG_FIELDS = frozenset(field.encode_name for field in msgspec.structs.fields(CommandConfig))
_TABLE_FIELDS = tuple(field.encode_name for field in msgspec.structs.fields(CommandTable))

LOCATION_SETTINGS = _TABLE_FIELDS
"""The settings in `[tasks.NAME]` that describe the command. All other settings are the configuration of the task."""


def command_task_location(
    name: str, settings: Mapping[str, JsonValue], project: Path, *, project_seconds: float
) -> CommandTaskLocation:
    """Return the location of a command task from its settings in `[tasks.NAME]`. Raises InvalidConfiguration.

    `project_seconds` is the time limit of a call of a task of project scope, unless the table has another one.
    """
    if not TASK_NAME_PATTERN.match(name):
        raise InvalidConfiguration(f"{name!r} is not a valid task name", hint="use lower-case letters, digits, - and _")
    if "python" in settings:
        raise InvalidConfiguration(f"the task {name!r} has both `python` and `command`", hint="remove one of the two")
    command = settings["command"]
    if isinstance(command, str):
        raise InvalidConfiguration(
            f"`command` of the task {name!r} must be a list, not a text",
            hint=f'to run it with a shell: command = ["sh", "-c", {msgspec.json.encode(command).decode()}]',
        )
    known = (*_TABLE_FIELDS, *_CONFIG_FIELDS)
    for key in settings:
        if key not in known:
            raise InvalidConfiguration(f"the task {name!r} has no setting {key!r}", hint=did_you_mean_text(key, known))
    try:
        table = msgspec.convert(
            {key: value for key, value in settings.items() if key in _TABLE_FIELDS}, CommandTable, strict=True
        )
        if table.records != EXIT_RECORDS:
            parse_report_format(table.records)
    except ValueError as error:
        raise InvalidConfiguration(f"[tasks.{name}]: {error}", hint="see: codebatch help linters") from error
    default_seconds = DEFAULT_CALL_SECONDS_MAX if table.scope == "file" else project_seconds
    return CommandTaskLocation(table=table, project=str(project.resolve()), default_seconds=default_seconds)


def resolve_commands(locations: Mapping[str, CommandTaskLocation]) -> dict[str, CommandTaskLocation]:
    """Look up the programs of command tasks, and query their versions, all at the same time.

    Raises InvalidConfiguration if a program is missing, or cannot tell its version.
    """
    if not locations:
        return {}
    from concurrent.futures import ThreadPoolExecutor  # Deferred: few commands need it.

    with killing_orphans(), ThreadPoolExecutor(max_workers=len(locations)) as pool:
        resolved = pool.map(_resolve_command, locations.keys(), locations.values())
        return dict(zip(locations, resolved, strict=True))


def find_program(location: CommandTaskLocation) -> str | None:
    """Return the absolute path of the program of a command task, or None if it is missing.

    A name without a slash is looked up on PATH. A relative path is below the directory of the configuration.
    """
    program = location.table.command[0]
    if "/" in program:
        path = os.path.normpath(os.path.join(location.project, program))
        is_allowed = os.path.isabs(program) or path.startswith(f"{location.project}/")
        return path if is_allowed and _is_executable(path) else None
    directories = program_directories()
    return shutil.which(program, path=os.pathsep.join(directories)) if directories else None


def _is_executable(path: str) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.X_OK)
    return False


def _resolve_command(name: str, location: CommandTaskLocation) -> CommandTaskLocation:
    table = location.table
    program = find_program(location)
    if program is None:
        where = f"an executable file in {location.project}" if "/" in table.command[0] else "on your PATH"
        if os.path.isabs(table.command[0]):
            where = "an executable file"
        raise InvalidConfiguration(
            f"the program {table.command[0]!r} of the task {name!r} is not {where}",
            hint=f"install it, set `optional = true` in [tasks.{name}], or leave out all commands with --no-commands",
        )
    for directory in table.link:
        if not os.path.isdir(os.path.join(location.project, directory)):
            raise InvalidConfiguration(
                f"the directory {directory!r} in `link` of the task {name!r} does not exist in {location.project}"
            )
    inputs = read_command_inputs(name, table, Path(location.project), program, os.environ)
    version = _query_version(name, program, location)
    number = None if version is None else _VERSION_NUMBER.search(version.decode("utf-8", "replace"))
    return replace(
        location,
        program=program,
        states=inputs.states,
        version=None if version is None else digest_bytes(version),
        version_text=number[0] if number else "unknown",
        lock={path: _lock_digest(name, location, path) for path in sorted(set(table.lock))},
        inputs=inputs.project,
        build=inputs.build,
    )


def _lock_digest(name: str, location: CommandTaskLocation, path: str) -> Digest:
    if not os.path.realpath(os.path.join(location.project, path)).startswith(f"{location.project}/"):
        raise InvalidConfiguration(
            f"{path!r} in `lock` of the task {name!r} is outside the project: it leads to "
            f"{os.path.realpath(os.path.join(location.project, path))}"
        )
    try:
        data = read_regular(Path(location.project, path), bytes_max=_LOCK_BYTES_MAX, is_link_followed=True)
    except OSError as error:
        raise InvalidConfiguration(f"cannot read {path!r} in `lock` of the task {name!r}: {error.strerror}") from error
    return digest_bytes(data)


def _query_version(name: str, program: str, location: CommandTaskLocation) -> bytes | None:
    """Return the output of the version command, or None if the table has `version = false`."""
    written = location.table.version
    if written is False:
        return None
    arguments = [*written] if isinstance(written, tuple) else [program, _VERSION_ARGUMENT]
    if arguments[0] == location.table.command[0]:
        arguments[0] = program
    with tempfile.TemporaryDirectory(prefix="codebatch-") as directory:
        call = ProgramCall(
            arguments=arguments,
            directory=directory,
            environment=command_environment(os.environ, location.table, directory),
            seconds_max=VERSION_SECONDS_MAX,
            output_bytes_max=_VERSION_BYTES_MAX,
        )
        try:
            end = run_program(call)
        except ProgramFailed as error:
            raise _version_error(name, arguments, str(error)) from error
    if end.exit_status:
        text = (end.error_output or end.output).decode("utf-8", "replace").strip()[-_OUTPUT_CHARACTERS_MAX:]
        raise _version_error(name, arguments, f"it ended with status {end.exit_status}: {text}".rstrip(": "))
    if not (end.output or end.error_output).strip():
        raise _version_error(name, arguments, "it printed nothing")
    return end.output or end.error_output


def _version_error(name: str, arguments: Sequence[str], reason: str) -> InvalidConfiguration:
    return InvalidConfiguration(
        f"the version of the program of the task {name!r} is unknown: {' '.join(arguments)}: {reason}",
        hint=f"set `version` in [tasks.{name}] to a command that prints the version, or to false",
    )


def command_environment(environment: Mapping[str, str], table: CommandTable, directory: str) -> dict[str, str]:
    """Return the environment of a program: that of workers, with HOME and TMPDIR in a scratch directory, and `env`.

    `environment` is that of the coordinator or of a worker.
    """
    variables = program_environment(environment) | _GIT_VARIABLES
    if table.home == "scratch":
        variables["HOME"] = directory
    return variables | {"TMPDIR": directory} | table.env


def command_declaration(name: str, location: CommandTaskLocation, parse: TaskDeclaration) -> TaskDeclaration:
    """Return the declaration of a command task. `parse` is that of the task that detects languages."""
    scope = location.table.scope
    contexts = {key: parse.contexts[key] for key in ("attributes", "language")}
    if location.table.config_files:
        contexts[config_files_context_name(name)] = config_files_context(name, location.table.config_files)
    return TaskDeclaration(
        name=name,
        version="1",
        summary=f"findings of {os.path.basename(location.table.command[0])}",
        implementation=f"codebatch_workers.tasks.command:create_{scope}_task",
        sources=("codebatch.errors", "codebatch.interchange", "codebatch.model"),
        records=("diagnostic", "omission"),
        scope=scope,
        config=CommandConfig,
        tools=tuple(tool for tool in parse.tools if tool != "ruff"),
        optional_tools=parse.optional_tools,
        programs={os.path.basename(location.program): location.version_text} if location.program else {},
        contexts=contexts,
    )


def config_files_context(name: str, patterns: Sequence[str]) -> ContextFactory:
    """Return a context with the files of the snapshot that match patterns. The value is the same for each entry.

    A symbolic link to a file of the snapshot has the content of this file. The context raises InvalidConfiguration for
    a link that leads out of the snapshot.
    """

    def context(view: SnapshotView) -> Callable[[Entry], bytes]:
        selected = parse_arguments(patterns, "config_files")
        chosen = [entry for entry in view.entries if selected.selects(entry.path)]
        entries = [(entry.path, entry.object, entry.executable) for entry in chosen if entry.kind == "file"]
        if any(entry.kind == "symlink" for entry in chosen):
            files = {entry.path: entry for entry in view.entries if entry.kind == "file"}
            targets = {
                entry.path: view.read(entry.path, "symlink") or b"" for entry in view.entries if entry.kind == "symlink"
            }
            for link in (entry for entry in chosen if entry.kind == "symlink"):
                target = resolve_link(link.path, targets)
                if target is None:
                    raise InvalidConfiguration(
                        f"`config_files` of the task {name!r} selects {link.text}, a link that leads out of the project"
                    )
                if (file := files.get(target)) is not None:
                    entries.append((link.path, file.object, file.executable))
        value = msgspec.msgpack.encode(sorted(entries))
        return lambda _: value

    return context
