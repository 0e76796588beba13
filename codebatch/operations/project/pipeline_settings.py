"""The tables `[pipelines.NAME]` of a configuration file: their type, and the errors that need no task."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import msgspec

from codebatch.errors import InvalidConfiguration
from codebatch.model.task import PIPELINES, TASK_NAME_PATTERN, WORK_PIPELINE
from codebatch.model.text.suggestions import did_you_mean_text
from codebatch.model.text.toml import TOML_BYTES_MAX
from codebatch.system.files.regular_files import read_regular

_TASKS_HINT = 'for example: tasks = ["parse", "lint"]'


class PipelineSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pipeline of the configuration. The tasks that its `tasks` need are added (pipelines.py).

    `default`: `run` uses this pipeline if `--pipeline` is not given.
    """

    tasks: tuple[str, ...]
    description: str = ""
    default: bool = False


def check_pipelines(path: Path, tables: object, *, has_default: bool) -> str | None:
    """Check the tables of all pipelines. Return the name of the default pipeline, or None if no table sets one.

    `tables` is the value of `pipelines` in the file `path`. `has_default` is set if the file has the setting
    `pipeline`. Whether the tasks exist is not checked. Raises InvalidConfiguration.
    """
    if not isinstance(tables, dict):
        raise InvalidConfiguration(f"{path}: `pipelines` is not a table", hint="write a table [pipelines.NAME]")
    default: str | None = None
    for name, table in tables.items():
        if not _check_table(path, name, table).default:
            continue
        problem = f"`default` is true for the pipelines {default!r} and {name!r}" if default is not None else ""
        if has_default:
            problem = f"`default` of the pipeline {name!r} cannot be used with the setting `pipeline`"
        if problem:
            raise InvalidConfiguration(f"{pipeline_place(path, name)}: {problem}", hint="remove one of them")
        default = name
    return default


def pipeline_place(path: Path, name: str) -> str:
    """Return the file and the line of the table of a pipeline as `file:line`. If the line is unknown, only the file."""
    quoted = re.escape(name)
    header = re.compile(rf"\s*\[\s*(?:tool\s*\.\s*codebatch\s*\.\s*)?pipelines\s*\.\s*(['\"]?){quoted}\1\s*\]")
    try:
        text = read_regular(path, bytes_max=TOML_BYTES_MAX, is_link_followed=True).decode()
    except (OSError, UnicodeDecodeError):  # The file was replaced, or is a long pyproject.toml.
        return str(path)
    lines = (number for number, line in enumerate(text.split("\n"), 1) if header.match(line))
    number = next(lines, None)
    return str(path) if number is None else f"{path}:{number}"


def _check_table(path: Path, name: str, table: object) -> PipelineSettings:
    """Return a table as settings. Raises InvalidConfiguration."""
    problem, hint = _find_name_problem(name)
    if not problem and not isinstance(table, dict):
        problem, hint = "it is not a table", f"write a table [pipelines.{name}]"
    elif not problem and isinstance(table, dict):
        known = PipelineSettings.__struct_fields__
        unknown = next((key for key in table if key not in known), None)
        if unknown is not None:
            problem, hint = f"unknown setting {unknown!r}", did_you_mean_text(unknown, known)
    settings = PipelineSettings(tasks=())
    if not problem:
        try:
            settings = msgspec.convert(table, PipelineSettings)
        except msgspec.ValidationError as error:
            problem, hint = str(error), _TASKS_HINT
        else:
            problem, hint = _find_list_problem(settings.tasks)
    if problem:
        raise InvalidConfiguration(f"{pipeline_place(path, name)}: pipeline {name!r}: {problem}", hint=hint)
    return settings


def _find_name_problem(name: str) -> tuple[str, str]:
    """Return the problem with the name of a pipeline and a hint. The problem is empty if there is none."""
    if name in PIPELINES:
        return "a built-in pipeline has this name", "choose another name"
    if name == WORK_PIPELINE:
        return "task lists use this name", "choose another name"
    if not TASK_NAME_PATTERN.match(name):
        return "invalid name", "use at most 64 lower-case letters, digits, - and _; begin with a letter"
    return "", ""


def _find_list_problem(tasks: tuple[str, ...]) -> tuple[str, str]:
    """Return the problem with a list of tasks and a hint. The problem is empty if there is none."""
    if not tasks:
        return "`tasks` is empty", _TASKS_HINT
    repeated = next((task for task, count in Counter(tasks).items() if count > 1), None)
    return ("", "") if repeated is None else (f"the task {repeated!r} is listed twice", "list each task once")
