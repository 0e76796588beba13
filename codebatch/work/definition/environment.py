"""The layers of environment variables of a task. Later layers override earlier ones.

They are: `env` and `env_file` of its file, those of `[defaults]`, and those of the task.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.model.work.command import EnvFile, EnvLayer
from codebatch.system.env_files import EnvFileError, read_env_file
from codebatch.work.definition.problems import DefinitionProblems
from codebatch.work.definition.tables import EnvFileEntries
from codebatch.work.definition.work_files import WorkFile

_EMPTY_LAYER = EnvLayer()
_OPTIONAL_HINT = 'if the file is optional: env_file = { path = "…", required = false }'


def read_env_variables(
    files: Sequence[WorkFile], environ: Mapping[str, str], problems: DefinitionProblems
) -> dict[str, str]:
    """Return the variables of the caller, overridden by the variables of all env files that the work files name.

    The values are used only for checks; each attempt reads the env files again. An unreadable env file is added to the
    problems.
    """
    variables = dict(environ)
    read_files: set[Path] = set()
    for file in files:
        for place, table in _iter_tables(file):
            for entry in _env_file_entries(table):
                path = _file_directory(file) / entry.path
                if path in read_files:
                    continue
                read_files.add(path)
                name = os.path.join(os.path.dirname(file.name), entry.path)
                try:
                    variables |= read_env_file(path, name, variables, is_required=entry.required)
                except EnvFileError as error:
                    is_missing = isinstance(error.__cause__, FileNotFoundError)
                    problems.add(f"{place}: {error}", _OPTIONAL_HINT if is_missing else None)
    return variables


def make_env_layer(table: Mapping[str, object], file: WorkFile, root: Path) -> EnvLayer:
    """Return the layer of environment variables that a table defines.

    In the table, paths are relative to the directory of the work file. In the result, they are relative to `root`.
    """
    if "env" not in table and "env_file" not in table:
        return _EMPTY_LAYER
    env: dict[str, str] = {}
    with contextlib.suppress(msgspec.ValidationError):  # The check of the table reports invalid values.
        env = msgspec.convert(table.get("env", {}), dict[str, str])
    paths = [(_file_directory(file) / entry.path, entry) for entry in _env_file_entries(table)]
    files = tuple(
        EnvFile(path=entry.path if os.path.isabs(entry.path) else os.path.relpath(path, root), required=entry.required)
        for path, entry in paths
    )
    return EnvLayer(files=files, env=env)


def combine_layers(layers: Sequence[EnvLayer]) -> tuple[tuple[EnvLayer, ...] | UnsetType, dict[str, str]]:
    """Combine layers of variables into the form in which a command stores them. `layers` are sorted, the lowest first.

    The command stores the highest layer with env files, and all layers below it: this is the first value of the result.
    If no layer has env files, it is UNSET. The second value has the variables of `env` that override these layers.
    """
    highest = max((place for place, layer in enumerate(layers) if layer.files), default=-1)
    env = {name: value for layer in layers[max(highest, 0) :] for name, value in layer.env.items()}
    if highest < 0:
        return UNSET, env
    return (*layers[:highest], EnvLayer(files=layers[highest].files)), env


def _iter_tables(file: WorkFile) -> Iterator[tuple[object, Mapping[str, object]]]:
    """Yield the tables of a work file that may name env files, each with its location."""
    yield file.table_location(), file.settings
    if isinstance(defaults := file.settings.get("defaults"), dict):
        yield file.table_location("defaults", table=defaults), defaults
    for written in file.task_sources:
        if isinstance(written.table, dict):
            yield written.place, written.table


def _env_file_entries(table: Mapping[str, object]) -> tuple[EnvFile, ...]:
    """Return the env files that a table names.

    Values of a wrong type are ignored, because the check of the table reports them.
    """
    if "env_file" not in table:
        return ()
    try:
        named = msgspec.convert(table["env_file"], EnvFileEntries)
    except msgspec.ValidationError:
        return ()
    entries = named if isinstance(named, tuple) else (named,)
    return tuple(
        EnvFile(path=each) if isinstance(each, str) else EnvFile(path=each.path, required=each.required)
        for each in entries
    )


def _file_directory(file: WorkFile) -> Path:
    return file.path if file.path.is_dir() else file.path.parent
