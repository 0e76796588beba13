"""Options of commands that read task lists: which files to read, and which tasks to select."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict, TypeVar

import click

from codebatch.cli.framework.commands import option
from codebatch.cli.framework.context import SourcePath
from codebatch.model.work.work_batch import CONFIDENCE_MIN

F = TypeVar("F", bound=Callable[..., object])


class TaskListOptions(TypedDict):
    """The values of the options in this module, with their names in WorkOptions."""

    only: bool
    tags: tuple[str, ...]
    unfinished: bool
    blocked: bool
    of: str | None
    command: str | None
    each_line: bool
    is_recursive: bool
    is_strict: bool
    infer: bool
    infer_confidence: float


_TASK_LIST_OPTIONS = [
    option(
        "-f",
        "--file",
        "paths",
        multiple=True,
        type=SourcePath(),
        metavar="FILE",
        default_text="nearest work.toml",
        help="Task list: a TOML, YAML, JSON, Markdown or text file, a directory, or -",
        details="work.toml is searched for from the current directory up to the top of the project. "
        "A directory contains one Markdown file for each task. With -, standard input is read.",
    ),
    option(
        "--command",
        metavar="COMMAND",
        help="Shell command for tasks that define none",
        details="An example is 'sed -n 1p {line}'.",
    ),
    option("--each-line", is_flag=True, help="Read each line of the files as a task, and run it with --command"),
    option("--recursive", "is_recursive", is_flag=True, help="Also read Markdown files in subdirectories"),
    option("--only", is_flag=True, help="Use only the chosen tasks; treat the tasks that they need as done"),
    option("--tag", "tags", metavar="TAG", multiple=True, help="Choose tasks with this tag, and the tasks they need"),
    option(
        "--unfinished",
        is_flag=True,
        help="Choose tasks that no batch has completed with their current definition",
    ),
    option("--blocked", is_flag=True, help="Choose tasks that wait for an answer"),
    option("--of", metavar="BATCH", help="With --unfinished or --blocked: choose only tasks of this batch"),
    option(
        "--no-infer",
        "infer",
        is_flag=True,
        flag_value=False,
        default=True,
        help="With --strategy auto: do not infer dependencies",
    ),
    option(
        "--infer-confidence",
        metavar="NUMBER",
        type=click.FloatRange(0, 1),
        default=CONFIDENCE_MIN,
        show_default=True,
        help="Minimum confidence of inferred dependencies, from 0 to 1",
        details="A value of 0.7 leaves out dependencies that are inferred because two tasks change the same file.",
    ),
    option("--strict", "is_strict", is_flag=True, help="Fail if `each` of a task matches nothing"),
]
_TASK_LIST_PARAMETERS = tuple(TaskListOptions.__annotations__)


def with_task_list_options(function: F) -> F:
    """Add the options of this module to a command. The command receives them as the arguments `paths` and `listing`."""

    @functools.wraps(function)
    def wrapped(*arguments: object, paths: tuple[Path, ...], **options: object) -> object:
        listing = {name: options.pop(name) for name in _TASK_LIST_PARAMETERS}
        return function(*arguments, paths=paths, listing=listing, **options)

    for decorator in reversed(_TASK_LIST_OPTIONS):
        wrapped = decorator(wrapped)
    return wrapped  # type: ignore[return-value]
