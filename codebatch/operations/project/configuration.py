"""Settings: the command line over the environment over the project's file over defaults.

The file is `codebatch.toml`, or `[tool.codebatch]` in `pyproject.toml`, in the directory the user stands in or the
nearest above it in the project. A tree that is merely analysed is never asked for settings.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from codebatch.errors import InvalidConfiguration
from codebatch.model.shard import ShardRule
from codebatch.model.task import Json
from codebatch.model.text.suggestions import did_you_mean
from codebatch.model.text.toml import BYTES_MAX, TomlError, parse_toml
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.isolated_tasks import isolated_catalogue
from codebatch.plugins.user_tasks import SETTINGS as OWN_SETTINGS
from codebatch.plugins.user_tasks import place_of
from codebatch.snapshotting.projects import iter_project_directories
from codebatch.system.files.regular_files import read_regular
from codebatch.system.host import usable_cores

FILE_NAMES = ("codebatch.toml", "pyproject.toml")
LOOKED_AT_BYTES_MAX = 64 << 20
"""A pyproject.toml is looked at whole for whether it speaks of us."""


class StoreSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many batches of each source, paths and pipeline a store keeps (SPEC.md "Garbage collection")."""

    keep: int = 50

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise ValueError("`keep` must be at least 1")


class IndexSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who makes the index of a batch (SPEC.md "Index"): `run` at its end, or `index-build` alone."""

    build: Literal["run", "never"] = "never"


class ProjectSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a file may set. None: decided when it is needed. `work` is a work list (SPEC.md "Work files")."""

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
    tasks: dict[str, dict[str, Json]] = {}
    work: dict[str, Json] = {}

    def __post_init__(self) -> None:
        if self.jobs is not None and self.jobs < 1:
            raise ValueError("`jobs` must be at least 1")
        for name in ("file_seconds_max", "project_seconds_max"):
            if not getattr(self, name) > 0:
                raise ValueError(f"`{name}` must be more than 0")
        if self.memory_mb_max is not None and self.memory_mb_max < 1:
            raise ValueError("`memory_mb_max` must be at least 1")


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """Settings and where they come from, and the tasks that they can be of."""

    settings: ProjectSettings
    file: Path | None
    set_in_file: frozenset[str]
    catalogue: TaskCatalogue

    @property
    def jobs(self) -> int:
        """Worker processes: as set, else the usable cores."""
        return self.settings.jobs or usable_cores()

    def with_task_setting(self, task: str, key: str, value: Json) -> Configuration:
        """The same, but for one setting of a task that the command line gives."""
        tasks = self.settings.tasks
        changed = {**tasks, task: {**tasks.get(task, {}), key: value}}
        return replace(self, settings=msgspec.structs.replace(self.settings, tasks=changed))

    def rows(self, memory_bytes: int) -> list[tuple[str, Json, str]]:
        """(name, value, origin) of every setting, by name; `memory_bytes` is what a worker may have by default."""
        document: dict[str, Json] = msgspec.to_builtins(self.settings)
        if not self.settings.work:
            del document["work"]
        rows: list[tuple[str, Json, str]] = []
        for name, place in self.catalogue.own_places.items():
            said = {"python": place.python, "tools": list(place.tools or ()), "files": list(place.files)}
            set_here = {key: value for key, value in said.items() if value} | ({} if place.reuse else {"reuse": False})
            document["tasks"][name] |= set_here  # type: ignore[index]
        for name, value in sorted(document.items()):
            origin = str(self.file) if name in self.set_in_file else "default"
            if name == "jobs" and value is None:
                value, origin = self.jobs, "usable cores"
            elif name == "memory_mb_max" and value is None:
                value, origin = memory_bytes >> 20, "available memory"
            rows.append((name, value, origin))
        return rows


def load_configuration(start: Path) -> Configuration:
    """The settings and the tasks of the project the user stands in. Raises InvalidConfiguration."""
    for directory in iter_project_directories(os.path.realpath(os.fsencode(start))):
        for name in FILE_NAMES:
            path = Path(os.fsdecode(directory), name)
            table = _read(path)
            if table is not None:
                return _decode(path, table)
    return Configuration(settings=ProjectSettings(), file=None, set_in_file=frozenset(), catalogue=isolated_catalogue())


def has_settings(directory: Path) -> bool:
    """Return whether a directory has a file with settings, or one that should have and cannot be read."""
    try:
        return any(_read(directory / name) is not None for name in FILE_NAMES)
    except InvalidConfiguration:
        return True


def _read(path: Path) -> dict[str, object] | None:
    """What a file sets; None where there is none, or it is a pyproject.toml that does not speak of us.

    What is wrong with such a one is for others to complain of. Raises InvalidConfiguration.
    """
    is_ours = path.name == "codebatch.toml"
    try:
        data = read_regular(path, bytes_max=BYTES_MAX if is_ours else LOOKED_AT_BYTES_MAX, is_link_followed=True)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if not is_ours and error.errno != errno.EFBIG:
            return None
        raise InvalidConfiguration(f"cannot read {path}: {error.strerror}") from error
    if not is_ours and b"codebatch" not in data:
        return None
    try:
        document = parse_toml(data.decode())
    except UnicodeDecodeError as error:
        raise InvalidConfiguration(f"cannot read {path}: {error}") from error
    except TomlError as error:
        raise InvalidConfiguration(f"{path} is not valid TOML: {error}") from error
    if is_ours:
        return document
    tool = document.get("tool", {})
    own = tool.get("codebatch") if isinstance(tool, dict) else None
    return own if isinstance(own, dict) else None


def _refuse_unknown(path: Path, table: Iterable[str], type_: type[msgspec.Struct], above: str) -> None:
    known = type_.__struct_fields__
    for name in table:
        if name not in known:
            hint = did_you_mean(name, known)
            raise InvalidConfiguration(f"unknown setting {above + name!r} in {path}", hint=hint)


def _decode(path: Path, table: dict[str, object]) -> Configuration:
    _refuse_unknown(path, table, ProjectSettings, "")
    for name, type_ in (("shard", ShardRule), ("store", StoreSettings)):
        if isinstance(below := table.get(name), dict):
            _refuse_unknown(path, below, type_, f"{name}.")
    try:
        settings = msgspec.convert(table, ProjectSettings)
    except (msgspec.ValidationError, ValueError) as error:
        raise InvalidConfiguration(f"{path}: {error}") from error
    own = {name: place_of(name, task, path.parent) for name, task in settings.tasks.items() if "python" in task}
    tasks = {
        name: {key: task[key] for key in task if name not in own or key not in OWN_SETTINGS}
        for name, task in settings.tasks.items()
    }
    return Configuration(
        settings=msgspec.structs.replace(settings, tasks=tasks),
        file=path,
        set_in_file=frozenset(table),
        catalogue=isolated_catalogue(own, file_seconds=settings.file_seconds_max),
    )
