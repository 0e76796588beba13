"""The command `engine check`."""

from __future__ import annotations

import click

from codebatch.cli.framework.commands import command
from codebatch.cli.framework.common_options import common_option
from codebatch.cli.framework.context import CommandContext, with_common_options
from codebatch.cli.framework.groups import CommandGroup, group_with_common_options
from codebatch.cli.output.tables import table_lines
from codebatch.cli.run.engine_options import EngineArguments, with_engine_options
from codebatch.cli.run.run import with_execution_options
from codebatch.model.text.quantities import count_text
from codebatch.operations.engines.check import EngineCheck, check_engine
from codebatch.operations.runs.execution import ExecutionSettings

EXIT_PROBLEM = 3


@command()
@with_engine_options
@common_option("pipeline")
@with_common_options
@with_execution_options
def check(context: CommandContext, execution: ExecutionSettings, engine: EngineArguments, pipeline: str | None) -> int:
    """Check whether an engine can run the tasks of this project.

    Asks each process of the engine for its versions of codebatch, Python and the tasks, and shows the differences.

    Exit status 3 if the engine has no process, or if a process cannot run the tasks.
    """
    with engine.request().opened() as opened:
        answer = check_engine(opened, execution, pipeline, context.note)
    context.print(answer, _check_lines(answer), name="engine-check")
    problems = sum(bool(process.problem) for process in answer.processes)
    if not answer.processes:
        context.report(f"{answer.engine} has no process")
    elif problems:
        context.report(
            f"{problems} of {count_text(len(answer.processes), 'process', 'processes')} cannot run these tasks"
        )
    return EXIT_PROBLEM if problems or not answer.processes else 0


@click.group(cls=CommandGroup)
@group_with_common_options
def engine() -> None:
    """Check an engine, which runs the tasks of files on other machines."""


engine.add_command(check)


def _check_lines(answer: EngineCheck) -> list[str]:
    rows = [
        (process.process, process.host, process.codebatch, process.python, process.problem or "ready")
        for process in answer.processes
    ]
    lines = table_lines(rows, ("process", "host", "codebatch", "python", "state")) if rows else []
    slots = count_text(answer.slots, "slot")
    lines.append(f"{answer.engine}: {slots}; tasks: {', '.join(answer.tasks) or 'none'}")
    lines += [f"the task {task} runs on this machine: {reason}" for task, reason in answer.local_tasks.items()]
    return lines
