"""The command `task`: creation and tests of custom tasks."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from codebatch.cli.framework.common_options import common_option
from codebatch.cli.framework.context import CommandContext, SourcePath, with_common_options
from codebatch.cli.framework.groups import CommandGroup, group_with_common_options
from codebatch.cli.output.records import record_line
from codebatch.errors import BatchIncomplete, InvalidInput
from codebatch.model.command_table import CallTotals
from codebatch.model.record import Record
from codebatch.model.text.quantities import count_text
from codebatch.operations.maintenance.determinism_check import OutputDifference, run_task_twice
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.queries.failure_evidence import parse_traceback
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.query.answers.omissions import OmissionSummary

_DIFFERENCES_SHOWN_MAX = 20


class TaskTestAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch task test`. `different` is the number of files whose results differ. `differences` lists
    the first of these files.
    """

    task: str
    files: int
    records: int
    failures: int
    different: int
    differences: tuple[OutputDifference, ...]


class TaskTryAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch task try`: the records of the task.

    `omissions` has the parts of the output of a program that are in no finding. If the task failed, `reason` is the
    kind of failure, and `evidence` has details such as a traceback.
    """

    task: str
    records: list[Record]
    omissions: tuple[OmissionSummary, ...]
    reason: str
    evidence: str


class _NoteListener(Listener):
    def __init__(self, context: CommandContext) -> None:
        self._context = context

    def note(self, text: str) -> None:
        self._context.note(text)


@click.group(cls=CommandGroup)
@group_with_common_options
def task() -> None:
    """Create and test custom tasks."""


@task.command("test")
@click.argument("name", metavar="NAME")
@click.argument("path", metavar="[PATH]", type=SourcePath(), default=Path())
@common_option("jobs")
@with_common_options
def test(context: CommandContext, name: str, path: Path, jobs: int | None) -> int:
    """Run a task twice and compare the results.

    Runs task NAME on PATH, by default the current directory. The second run processes the files in smaller groups, in
    another order and with another Python hash seed. Nothing is stored.

    Exit status 1 if the results of a file differ. Otherwise, exit status 3 if a result failed, or if the task was
    called for no file.
    """
    execution = ExecutionSettings(configuration=load_configuration(Path.cwd()), jobs=jobs)
    check_result = run_task_twice(execution, name, [path], _NoteListener(context))
    if check_result.signal_status:
        return check_result.signal_status
    displayed_differences = check_result.differences[:_DIFFERENCES_SHOWN_MAX]
    lines = [
        f"{difference.path}:\n  - {difference.first}\n  + {difference.second}" for difference in displayed_differences
    ]
    if len(check_result.differences) > len(displayed_differences):
        lines.append(f"{len(check_result.differences) - len(displayed_differences):,} more files are not listed")
    outcome = f"{count_text(len(check_result.differences), 'file')} differ" if check_result.differences else "identical"
    counts = f"{count_text(check_result.files, 'file')}, {count_text(check_result.records, 'record')}"
    lines.append(f"{check_result.task}: {counts}, {outcome}")
    if check_result.failures:
        lines.append(f"{count_text(check_result.failures, 'result')} failed")
    if not check_result.is_called:
        context.report(
            f"nothing tested: no file matches the settings `match` and `class` of [tasks.{check_result.task}]"
        )
    tested = TaskTestAnswer(
        task=check_result.task,
        files=check_result.files,
        records=check_result.records,
        failures=check_result.failures,
        different=len(check_result.differences),
        differences=displayed_differences,
    )
    context.print(tested, [difference for line in lines for difference in line.split("\n")])
    is_incomplete = check_result.failures or not check_result.is_called
    return 1 if check_result.differences else BatchIncomplete.exit_status if is_incomplete else 0


@task.command("try")
@click.argument("name", metavar="NAME")
@click.argument("path", metavar="FILE", type=SourcePath())
@with_common_options
def try_(context: CommandContext, name: str, path: Path) -> int:
    """Run a task on one file and show its results.

    The task runs as in `codebatch run`. A proposed change is shown as a patch. Nothing is stored.

    Exit status 1 if the task fails. Its exception and traceback are shown, or the errors that its program printed. Exit
    status 3 if the task is not called for the file.
    """
    from codebatch.operations.maintenance.task_trial import try_file

    execution = ExecutionSettings(configuration=load_configuration(Path.cwd()), jobs=1)
    trial_result = try_file(execution, name, path, _NoteListener(context))
    if trial_result.signal_status:
        return trial_result.signal_status
    document = {
        "task": trial_result.task,
        "records": trial_result.records,
        "omissions": trial_result.omissions,
        "reason": trial_result.reason,
        "evidence": trial_result.evidence,
    }
    lines = list(map(record_line, trial_result.records))
    if trial_result.patch:
        lines += trial_result.patch.decode("utf-8", "backslashreplace").removesuffix("\n").split("\n")
    if trial_result.reason:
        raised = parse_traceback(trial_result.evidence)
        lines += [
            f"{trial_result.task} failed: {trial_result.reason}",
            *(f"  {line}" for line in (*raised.exception_lines, *raised.frames)),
        ]
    for omission in trial_result.omissions:
        context.report(omission.text)
    context.print(document, lines, if_none=_empty_text(trial_result.task, path, trial_result.calls))
    is_called = trial_result.calls is None or bool(trial_result.calls.files)
    return 1 if trial_result.reason else 0 if is_called else BatchIncomplete.exit_status


def _empty_text(name: str, path: Path, calls: CallTotals | None) -> str:
    """Return the note about a task without records. `calls` is as in FileTrialResult."""
    if calls is not None and not calls.files:
        return f"{name} was not called: {path} does not match the settings `match` and `class` of [tasks.{name}]"
    note = f"{name} has no records for {path}"
    if calls is not None:
        note += ": its program was called, and reported nothing in this file"
    return note


def _complete_tool(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from codebatch.operations.project.linter_recipes import LINTER_RECIPES

    return [tool for tool in LINTER_RECIPES if tool.startswith(incomplete)]


@task.command("new")
@click.argument("name", metavar="NAME")
@click.option(
    "--command",
    "tool",
    metavar="TOOL",
    shell_complete=_complete_tool,
    help="Write a table that calls TOOL, such as shellcheck, mypy or eslint",
)
@click.option("--change", "is_change", is_flag=True, help="Write a task that proposes changes of files")
@click.option("--rewrite", "is_rewrite", is_flag=True, help="Write a table that replaces code, which needs no Python")
@with_common_options
def new(context: CommandContext, name: str, tool: str | None, is_change: bool, is_rewrite: bool) -> None:
    """Create an example of a custom task.

    Writes a task to tools/NAME.py, a test of the task, and its entry in the configuration file.

    With --command, only writes a table for a linter to the configuration file: codebatch help linters. With --rewrite,
    only writes a table that replaces code: codebatch help rewrites
    """
    from codebatch.operations.project.scaffolding import scaffold_command_task, scaffold_rewrite_task, scaffold_task
    from codebatch.operations.project.task_example import CHANGE_EXAMPLE, FINDING_EXAMPLE

    start = Path.cwd()
    if is_rewrite and (is_change or tool is not None):
        raise InvalidInput(f"--rewrite cannot be used with {'--change' if is_change else '--command'}")
    if is_rewrite:
        created = scaffold_rewrite_task(start, name)
    elif tool is None:
        created = scaffold_task(start, name, CHANGE_EXAMPLE if is_change else FINDING_EXAMPLE)
    elif is_change:
        raise InvalidInput("--change cannot be used with --command", hint="linters report findings only")
    else:
        created = scaffold_command_task(start, name, tool)
    named = (f"{created.configuration}:", *(f"  {line}" for line in created.text.splitlines()))
    context.print(created, context.unless_quiet([*filter(None, (created.file, created.test)), *named]))
    context.note(f"try it on a file with: codebatch task try {name} FILE")
    context.note("run it on all files with: codebatch run")
