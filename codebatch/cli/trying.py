"""`task`: trying out tasks."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from codebatch.application.configuration import load_configuration
from codebatch.application.execution import Execution, Listener
from codebatch.application.trying import Difference, try_task
from codebatch.cli.groups import Group, answering_group
from codebatch.cli.options import Answering, SourcePath, answering
from codebatch.model.quantities import count_of

_SHOWN_MAX = 20


class TaskTested(msgspec.Struct, frozen=True, kw_only=True):
    """`task test`: how many files a task told otherwise the second time, and the first of them."""

    task: str
    files: int
    records: int
    failures: int
    different: int
    differences: tuple[Difference, ...]


class _Notes(Listener):
    def __init__(self, answering: Answering) -> None:
        self._answering = answering

    def note(self, text: str) -> None:
        self._answering.note(text)


@click.group(cls=Group)
@answering_group
def task() -> None:
    """Trying out tasks, your own above all."""


@task.command("test")
@click.argument("name", metavar="NAME")
@click.argument("path", metavar="[PATH]", type=SourcePath(), default=Path())
@click.option("-j", "--jobs", type=click.IntRange(min=1), help="Worker processes. Default: the usable cores.")
@answering
def test(answering: Answering, name: str, path: Path, jobs: int | None) -> int:
    """Run a task twice over PATH (default: here): the same bytes must come of it.

    The second time the shards are small, their order and Python's hash seed are others. Nothing is kept, and no store
    is touched. Exit status 1 where a file is told otherwise.
    """
    execution = Execution(configuration=load_configuration(Path.cwd()), jobs=jobs)
    tried = try_task(execution, name, [path], _Notes(answering))
    if tried.signal_status:
        return tried.signal_status
    shown = tried.differences[:_SHOWN_MAX]
    lines = [f"{each.path}:\n  - {each.first}\n  + {each.second}" for each in shown]
    if len(tried.differences) > len(shown):
        lines.append(f"{len(tried.differences) - len(shown):,} more files are not listed")
    outcome = f"{count_of(len(tried.differences), 'file')} told otherwise" if tried.differences else "told alike"
    lines.append(f"{tried.task}: {count_of(tried.files, 'file')}, {count_of(tried.records, 'record')}, {outcome}")
    if tried.failures:
        lines.append(f"{count_of(tried.failures, 'result')} of it failed")
    tested = TaskTested(
        task=tried.task,
        files=tried.files,
        records=tried.records,
        failures=tried.failures,
        different=len(tried.differences),
        differences=shown,
    )
    answering.print(tested, [each for line in lines for each in line.split("\n")])
    return 1 if tried.differences else 0
