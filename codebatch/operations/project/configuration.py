"""Settings. The order of precedence is: command line, environment, the project's configuration file, defaults.

The file is `codebatch.toml`, or `[tool.codebatch]` in `pyproject.toml`. It is in the directory of the user, by default
the current directory, or the nearest directory above it in the project. If the analysed tree is not in this project,
its files cannot provide settings.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from codebatch.errors import InvalidConfiguration
from codebatch.model.command_table import TaskLocation
from codebatch.model.entry import display_path
from codebatch.model.shard import ShardRule
from codebatch.model.task import JsonValue
from codebatch.model.text.suggestions import did_you_mean_text
from codebatch.model.text.toml import TOML_BYTES_MAX, TomlError, parse_toml
from codebatch.operations.project.pipeline_settings import PipelineSettings, check_pipelines
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.command_tasks import LOCATION_SETTINGS as COMMAND_SETTINGS
from codebatch.plugins.command_tasks import command_task_location
from codebatch.plugins.isolated_tasks import isolated_catalogue
from codebatch.plugins.rewrite_tasks import VERIFY_SETTING, rewrite_task_location, verify_setting
from codebatch.plugins.user_tasks import LOCATION_SETTINGS as OWN_SETTINGS
from codebatch.plugins.user_tasks import custom_task_location
from codebatch.snapshotting.projects import find_search_end, iter_project_directories
from codebatch.system.files.regular_files import read_regular
from codebatch.system.host import usable_cores

KEEP_DEFAULT = 50
KEEP_IN_CI = 3
"""Number of batches that a run in CI keeps by default. Each job saves and restores the store, so it must be small."""

CONFIGURATION_FILE_NAMES = ("codebatch.toml", "pyproject.toml")
PYPROJECT_BYTES_MAX = 64 << 20
"""Maximum size of a pyproject.toml. The file is read completely to find out whether it configures codebatch."""


class StoreSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The number of batches that a store keeps for each source, paths and pipeline (SPEC.md "Garbage collection")."""

    keep: int | None = None

    def __post_init__(self) -> None:
        if self.keep is not None and self.keep < 1:
            raise ValueError("`keep` must be at least 1")


class IndexSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When the index of a batch is built (SPEC.md "Index"): at the end of `run`, or only by `index build`."""

    build: Literal["run", "never"] = "run"


class ProjectSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a configuration file. If a setting is None, its value is determined on use.

    For `work`, see SPEC.md "Work files".
    """

    jobs: int | None = None
    pipeline: str = "full"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    file_seconds_max: float = 30.0
    project_seconds_max: float = 3600.0
    memory_mb_max: int | None = None
    shard: ShardRule = msgspec.field(default_factory=ShardRule)
    store: StoreSettings = msgspec.field(default_factory=StoreSettings)
    index: IndexSettings = msgspec.field(default_factory=IndexSettings)
    tasks: dict[str, dict[str, JsonValue]] = {}
    pipelines: dict[str, PipelineSettings] = {}
    work: dict[str, JsonValue] = {}

    def __post_init__(self) -> None:
        if self.jobs is not None and self.jobs < 1:
            raise ValueError("`jobs` must be at least 1")
        for name in ("file_seconds_max", "project_seconds_max"):
            if not getattr(self, name) > 0:
                raise ValueError(f"`{name}` must be more than 0")
        if self.memory_mb_max is not None and self.memory_mb_max < 1:
            raise ValueError("`memory_mb_max` must be at least 1")


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """The settings with their origin, and the catalogue of available tasks.

    - `directory`: the directory whose project the settings are of.
    - `verify_commands`: the shell command `verify` of each task that has one (SPEC.md "Changes").
    - `unread_note`: a note about settings that are not used because of their directory, or an empty string.
    """

    directory: Path
    settings: ProjectSettings
    file: Path | None
    set_in_file: frozenset[str]
    catalogue: TaskCatalogue
    verify_commands: Mapping[str, str] = {}
    unread_note: str = ""

    @property
    def jobs(self) -> int:
        """The number of worker processes: the configured number, or the usable cores."""
        return self.settings.jobs or usable_cores()

    @property
    def keep(self) -> int:
        """The number of batches that the store keeps: the configured number, or the default outside of CI."""
        return self.settings.store.keep or KEEP_DEFAULT

    def with_task_setting(self, task: str, key: str, value: JsonValue) -> Configuration:
        """Return a copy with one setting of a task replaced, as given on the command line."""
        tasks = self.settings.tasks
        changed = {**tasks, task: {**tasks.get(task, {}), key: value}}
        return replace(self, settings=replace(self.settings, tasks=changed))

    def without_commands(self) -> Configuration:
        """Return a copy without the tasks that run code of the project: tasks that call a program, and custom tasks.

        They are removed from all pipelines, too.
        """
        omitted, settings = {*self.catalogue.commands, *self.catalogue.custom_locations}, self.settings
        pipelines = {
            name: replace(pipeline, tasks=tuple(task for task in pipeline.tasks if task not in omitted))
            for name, pipeline in settings.pipelines.items()
        }
        tasks = {name: value for name, value in settings.tasks.items() if name not in omitted}
        locations = {name: place for name, place in self.catalogue.locations.items() if name not in omitted}
        return replace(
            self,
            settings=replace(settings, tasks=tasks, pipelines=pipelines),
            catalogue=isolated_catalogue(locations, file_seconds=settings.file_seconds_max),
        )

    def setting_rows(self, memory_bytes: int) -> list[tuple[str, JsonValue, str]]:
        """Return (name, value, origin) of every setting, by name.

        `memory_bytes` is the default memory limit of a worker.
        """
        document: dict[str, JsonValue] = msgspec.to_builtins(self.settings)
        if not self.settings.work:
            del document["work"]
        rows: list[tuple[str, JsonValue, str]] = []
        for name, place in self.catalogue.custom_locations.items():
            options = {"python": place.python, "tools": list(place.tools or ()), "files": list(place.files)}
            values_set = {key: value for key, value in options.items() if value} | (
                {} if place.reuse else {"reuse": False}
            )
            document["tasks"][name] |= values_set  # type: ignore[index]
        for name, verify in self.verify_commands.items():
            document["tasks"][name][VERIFY_SETTING] = verify  # type: ignore[index]
        for name, command in self.catalogue.commands.items():
            document["tasks"][name] |= msgspec.to_builtins(command.table)  # type: ignore[index]
        for name, value in sorted(document.items()):
            origin = str(self.file) if name in self.set_in_file else "default"
            if name == "jobs" and value is None:
                value, origin = self.jobs, "usable cores"
            elif name == "store" and self.settings.store.keep is None:
                value, origin = {"keep": KEEP_DEFAULT}, f"default; {KEEP_IN_CI} after a run in CI"
            elif name == "memory_mb_max" and value is None:
                value, origin = memory_bytes >> 20, "available memory"
            rows.append((name, value, origin))
        return rows


def load_configuration(start: Path, programs_directory: Path | None = None) -> Configuration:
    """Return the settings and tasks of the project that contains `start`. Raises InvalidConfiguration.

    Programs of tasks are looked up below `programs_directory`, by default the directory of the settings.
    """
    real_start = os.path.realpath(os.fsencode(start))
    for directory in iter_project_directories(real_start):
        for name in CONFIGURATION_FILE_NAMES:
            path = Path(os.fsdecode(directory), name)
            table = _read_settings(path)
            if table is not None:
                _refuse_second_file(path)
                return _decode_settings(start, path, table, programs_directory or path.parent)
    return replace(default_configuration(start), unread_note=_unread_note(real_start))


def _refuse_second_file(path: Path) -> None:
    """Raise InvalidConfiguration if the directory of a configuration file has another one, which would be ignored.

    A task list in the other file is not ignored.
    """
    other = path.with_name(CONFIGURATION_FILE_NAMES[-1])
    try:
        ignored = None if other == path else _read_settings(other)
    except InvalidConfiguration:
        return
    if ignored is not None and not ignored.keys() <= {"work"}:
        raise InvalidConfiguration(
            f"both {path} and [tool.codebatch] of {other.name} have settings", hint=f"move all settings to {path.name}"
        )


def _unread_note(directory: bytes) -> str:
    end = find_search_end(directory)
    if end is None or not has_settings(Path(os.fsdecode(end[0]))):
        return ""
    return f"the settings in {display_path(end[0])} are not used, because {end[1]}"


def default_configuration(start: Path) -> Configuration:
    """Return the configuration of the project that contains `start` if it has no configuration file."""
    return Configuration(
        directory=start,
        settings=ProjectSettings(),
        file=None,
        set_in_file=frozenset(),
        catalogue=isolated_catalogue(),
    )


def has_settings(directory: Path) -> bool:
    """Return whether a directory has a configuration file. An invalid configuration file counts too."""
    try:
        return any(_read_settings(directory / name) is not None for name in CONFIGURATION_FILE_NAMES)
    except InvalidConfiguration:
        return True


def _read_settings(path: Path) -> dict[str, object] | None:
    """Return the settings in a file, or None if it does not exist or is a pyproject.toml without `[tool.codebatch]`.

    An invalid pyproject.toml is ignored unless it mentions codebatch. Raises InvalidConfiguration.
    """
    is_own_file = path.name == "codebatch.toml"
    try:
        data = read_regular(
            path, bytes_max=TOML_BYTES_MAX if is_own_file else PYPROJECT_BYTES_MAX, is_link_followed=True
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if not is_own_file and error.errno != errno.EFBIG:
            return None
        raise InvalidConfiguration(f"cannot read {path}: {error.strerror}") from error
    if not is_own_file and b"codebatch" not in data:
        return None
    try:
        document = parse_toml(data.decode())
    except UnicodeDecodeError as error:
        raise InvalidConfiguration(f"cannot read {path}: {error}") from error
    except TomlError as error:
        raise InvalidConfiguration(f"{path} is not valid TOML: {error}") from error
    if is_own_file:
        return document
    tool = document.get("tool", {})
    own_table = tool.get("codebatch") if isinstance(tool, dict) else None
    return own_table if isinstance(own_table, dict) else None


def _refuse_unknown(path: Path, table: Iterable[str], type_: type[msgspec.Struct], above: str) -> None:
    known = type_.__struct_fields__
    for name in table:
        if name not in known:
            hint = did_you_mean_text(name, known)
            raise InvalidConfiguration(f"unknown setting {above + name!r} in {path}", hint=hint)


def _decode_settings(start: Path, path: Path, table: dict[str, object], programs_directory: Path) -> Configuration:
    _refuse_unknown(path, table, ProjectSettings, "")
    for name, type_ in (("shard", ShardRule), ("store", StoreSettings)):
        if isinstance(subtable := table.get(name), dict):
            _refuse_unknown(path, subtable, type_, f"{name}.")
    default = check_pipelines(path, table.get("pipelines", {}), has_default="pipeline" in table)
    if default is not None:
        table = {**table, "pipeline": default}
    try:
        settings = msgspec.convert(table, ProjectSettings)
    except (msgspec.ValidationError, ValueError) as error:
        raise InvalidConfiguration(f"{path}: {error}") from error
    locations: dict[str, TaskLocation] = {}
    tasks: dict[str, dict[str, JsonValue]] = {}
    verify_commands: dict[str, str] = {}
    for name, task in settings.tasks.items():
        own_settings: tuple[str, ...] = ()
        if "command" in task:
            own_settings = COMMAND_SETTINGS
            locations[name] = command_task_location(
                name, task, programs_directory, project_seconds=settings.project_seconds_max
            )
        elif "python" in task:
            own_settings = (*OWN_SETTINGS, VERIFY_SETTING)
            locations[name] = custom_task_location(name, task, programs_directory)
        elif "rewrites" in task:
            own_settings = (VERIFY_SETTING,)
            locations[name] = rewrite_task_location(name)
        if VERIFY_SETTING in task and VERIFY_SETTING in own_settings:
            verify_commands[name] = verify_setting(name, task)
        tasks[name] = {key: value for key, value in task.items() if key not in own_settings}
    return Configuration(
        directory=start,
        settings=msgspec.structs.replace(settings, tasks=tasks),
        file=path,
        set_in_file=frozenset(table),
        catalogue=isolated_catalogue(locations, file_seconds=settings.file_seconds_max),
        verify_commands=verify_commands,
    )
