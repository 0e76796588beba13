"""The command `join`."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec.structs import replace

from codebatch.cli.answers.run_answer import answer_run
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.common_options import common_option
from codebatch.cli.framework.context import CommandContext, with_common_options
from codebatch.cli.run.run import RunListener, configure_execution, refuse_options_with_batch, with_execution_options
from codebatch.errors import InvalidInput
from codebatch.operations.runs import join as joining
from codebatch.operations.runs.execution import ExecutionSettings
from codebatch.operations.runs.part_selection import MissingParts
from codebatch.operations.runs.run_request import prepare_request


@command()
@click.argument("arguments", metavar="PART... [PATH]", nargs=-1, required=True, type=click.Path())
@common_option("pipeline")
@option("--strict", "is_strict", is_flag=True, help="If a part is missing, exit with status 3 and run nothing")
@option(
    "--missing",
    "lists_missing",
    is_flag=True,
    help="List the parts that must run again, and join nothing",
    details="With --json, `parts` is a list for a job matrix.",
)
@option("--no-cache", is_flag=True, help="Do not reuse cached results of earlier batches")
@option("--no-commands", is_flag=True, help="Leave out all tasks that call a program, and custom tasks")
@common_option("include")
@common_option("exclude")
@option("--allow-empty", is_flag=True, help="Succeed if there is no file to analyse")
@common_option("batch", default_text="batch of the current files, or a new batch", help="Join the parts to this batch")
@with_common_options
@with_execution_options
def join(
    context: CommandContext,
    execution: ExecutionSettings,
    arguments: tuple[str, ...],
    batch_reference: str | None,
    pipeline: str | None,
    is_strict: bool,
    lists_missing: bool,
    no_cache: bool,
    no_commands: bool,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    allow_empty: bool,
) -> int:
    """Join parts that ran on other machines, and finish the run.

    Reads each file PART, which `codebatch run --part` wrote on any machine, for the files at PATH. PATH must be a
    directory, by default the current directory. Results that no part has are produced here. The results are the same
    as those of `codebatch run`.

    Parts may be given in any order and repeatedly. A damaged part is left out with a note. A part of other files, tasks
    or tool versions is an error.

    --pipeline, --include, --exclude and --no-commands must be the same as for `codebatch run --part`.
    """
    execution = configure_execution(replace(execution, reuses=not no_cache), no_commands=no_commands)
    directories = tuple(Path(argument) for argument in arguments if Path(argument).is_dir())
    parts = [Path(argument) for argument in arguments if not Path(argument).is_dir()]
    if not parts:
        raise InvalidInput("no part file was given", hint="for example: codebatch join parts/*.cbpart .")
    listener = RunListener(context)
    if batch_reference is not None:
        given: dict[str, object] = {"PATH": directories, "--pipeline": pipeline, "--include": include}
        given |= {"--exclude": exclude, "--no-commands": no_commands, "--allow-empty": allow_empty}
        refuse_options_with_batch([name for name, value in {**given, "--missing": lists_missing}.items() if value])
        store, batch = context.batch(batch_reference)
        return answer_run(context, joining.join_batch(execution, store, batch, parts, listener, is_strict=is_strict))
    request = prepare_request(
        directories or (Path(),), context.store_place, execution, pipeline, None, include, exclude
    )
    if lists_missing:
        return _print_missing(context, joining.list_missing_parts(request, parts, listener, allow_empty=allow_empty))
    return answer_run(context, joining.join(request, parts, listener, is_strict=is_strict, allow_empty=allow_empty))


def _print_missing(context: CommandContext, missing: MissingParts) -> int:
    context.print(missing, missing.parts, if_none=f"no part of {missing.count:,} is missing", name="join-missing")
    return 0
