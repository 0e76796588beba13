"""Options of commands that read lists of tasks: which files, which tasks of them, which of these run first."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict, TypeVar

import click

from codebatch.cli.options import SourcePath
from codebatch.model.work import CONFIDENCE_MIN

F = TypeVar("F", bound=Callable[..., object])


class Listing(TypedDict):
    """What these options say, as `WorkOptions` has it."""

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


_OPTIONS = [
    click.option(
        "-f",
        "--file",
        "paths",
        multiple=True,
        type=SourcePath(),
        metavar="FILE",
        help="What to run: TOML, YAML, JSON, a directory of markdown, - … (may be repeated). Default: the nearest "
        "work.toml, from here up to the top of the project.",
    ),
    click.option("--command", help="What tasks run that say nothing else, as a shell has it: 'sed -n 1p {line}'."),
    click.option("--each-line", is_flag=True, help="The files have a task on each line, for --command."),
    click.option("--recursive", "is_recursive", is_flag=True, help="Markdown below directories of directories, too."),
    click.option("--only", is_flag=True, help="The chosen tasks without what they need, which counts as done."),
    click.option("--tag", "tags", multiple=True, help="The tasks that have it, with what they need (may be repeated)."),
    click.option(
        "--unfinished", is_flag=True, help="The tasks that no batch of this list has done as they are defined now."
    ),
    click.option("--blocked", is_flag=True, help="The tasks that wait for an answer."),
    click.option("--of", metavar="BATCH", help="With --unfinished or --blocked: only tasks of this batch."),
    click.option(
        "--no-infer",
        "infer",
        is_flag=True,
        flag_value=False,
        default=True,
        help="Under auto, no edge that is not written.",
    ),
    click.option(
        "--infer-confidence",
        type=click.FloatRange(0, 1),
        default=CONFIDENCE_MIN,
        help="How sure an inferred edge must be. Default: 0.5; 0.7 leaves out tasks that change the same file.",
    ),
    click.option("--strict", "is_strict", is_flag=True, help="An `each` that matches nothing is an error."),
]
_NAMES = tuple(Listing.__annotations__)


def list_options(function: F) -> F:
    """Give a command these options, as its arguments `paths` and `listing`."""

    @functools.wraps(function)
    def wrapped(*given: object, paths: tuple[Path, ...], **options: object) -> object:
        listing = {name: options.pop(name) for name in _NAMES}
        return function(*given, paths=paths, listing=listing, **options)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[return-value]
