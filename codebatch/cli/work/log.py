"""The command `work log`: the output of tasks."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click
import msgspec

from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.completion import complete_command
from codebatch.cli.framework.context import CommandContext, with_common_options, work_batch_option
from codebatch.cli.framework.read_report import explain_option
from codebatch.cli.output.colors import is_colored
from codebatch.cli.output.program_output import ProgramOutput
from codebatch.errors import BatchIncomplete, InvalidInput
from codebatch.model.work.task_patterns import has_wildcard
from codebatch.scheduling.lifecycle import CommandState
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.work.logs import last_lines
from codebatch.work.control.batches import WorkBatch, load_work_batch
from codebatch.work.control.log_follow import FollowedTask, follow_log
from codebatch.work.control.logs import AttemptLogFile, find_log, iter_log, last_attempt_log
from codebatch.work.control.requests import find_commands

_LINES_IN_JSON = 20


class LogRow(msgspec.Struct, frozen=True, kw_only=True):
    """A log in the answer of `codebatch work log`.

    `bytes` is the size of the log, or null if the log no longer exists. `last` has its last lines.
    """

    task: str
    round: int
    path: str
    bytes: int | None
    last: tuple[str, ...]


@command("log")
@click.argument("task", required=False, shell_complete=complete_command)
@work_batch_option
@option(
    "--round",
    "round_",
    metavar="N",
    type=click.IntRange(min=1),
    help="Print the log of attempt N; each retry is a new attempt",
    details="`codebatch work attempts` lists the attempts of a task.",
)
@option("--follow", "-f", "follows", is_flag=True, help="Continue with new output until the task ends")
@option("--tail", type=click.IntRange(min=1), metavar="LINES", help="Print only the last lines")
@option("--raw", "is_raw", is_flag=True, help="Print control characters as they are, on a terminal too")
@explain_option
@with_common_options
def log(
    context: CommandContext,
    task: str | None,
    batch_reference: str | None,
    round_: int | None,
    follows: bool,
    tail: int | None,
    is_raw: bool,
) -> int:
    """Print the output of a task.

    Without TASK, prints the output of all failed and blocked tasks, each line prefixed with its task. Exit status 3 if
    a log is missing. TASK can be a pattern, such as 'test/*'.

    With --follow, prints the output of the last attempt and of all later attempts. If the process that runs the batch
    dies, the command waits until the batch is resumed. With --json, each line is an object. Exit status 3 unless the
    task succeeds.

    In a file or pipe, the output is unchanged. On a terminal, control characters other than colours are shown as
    escapes.
    """
    if task is None and round_ is not None:
        raise InvalidInput("--round needs a TASK", hint="give the task: codebatch work log TASK --round N")
    if follows:
        if task is None or round_ is not None or tail is not None:
            raise InvalidInput("--follow needs a TASK, and cannot be used with --round or --tail")
        return _print_followed(context, *context.batch(batch_reference, "work"), task, is_raw=is_raw)
    work_batch = load_work_batch(*context.batch(batch_reference, "work"))
    failed = (CommandState.FAILED, CommandState.BLOCKED)
    logs = (
        [last_attempt_log(work_batch, attempt_log) for attempt_log in work_batch.commands_in(*failed)]
        if task is None
        else [
            find_log(work_batch, command.id, round_) for command in find_commands(work_batch, [task]) if command.round
        ]
        if has_wildcard(task)
        else [find_log(work_batch, task, round_)]
    )
    missing = [attempt_log for attempt_log in logs if attempt_log.bytes is None]
    for attempt_log in missing:
        context.report(f"the log of {attempt_log.task} is missing: {attempt_log.path}")
    status = BatchIncomplete.exit_status if missing else 0
    if context.as_json:
        context.print([_log_row(work_batch, attempt_log, tail or _LINES_IN_JSON) for attempt_log in logs], ())
        return status
    is_escaped = sys.stdout.isatty() and not is_raw
    context.display.erase_for_output()
    for attempt_log in logs:
        pieces = iter_log(work_batch.batch.files, attempt_log, tail=tail)
        mark = f"[{attempt_log.task}] " if task is None or has_wildcard(task) else ""
        if is_escaped:
            output = ProgramOutput(is_colored=is_colored(context.color))
            pieces = (f"{mark}{output.printable_line(line)}\n".encode() for line in _log_lines(pieces))
        elif mark:
            pieces = _prefix_lines(mark.encode(), pieces)
        for piece in pieces:
            getattr(sys.stdout, "unfiltered", sys.stdout.buffer).write(piece)
        sys.stdout.flush()
    if not logs:
        context.note("no task failed" if task is None else "no task that matches has started")
    return status


def _print_followed(context: CommandContext, store: StoreDir, batch: BatchDir, task: str, *, is_raw: bool) -> int:
    """Print the output of a task until the task ends. Return the exit status."""
    output = ProgramOutput(is_colored=is_colored(context.color))
    is_escaped = sys.stdout.isatty() and not is_raw
    state, is_conducted = None, True
    context.display.erase_for_output()
    for item in follow_log(store, batch, task):
        if isinstance(item, FollowedTask):
            if is_conducted and not item.is_conducted and not item.is_over:
                context.note(f"no process runs the batch; resume it with: codebatch resume --batch {batch.id}")
            state, is_conducted = item.state, item.is_conducted
            continue
        text = msgspec.json.encode(item) if context.as_json else item.line.encode("utf-8", "replace")
        if is_escaped and not context.as_json:
            text = output.printable_line(item.line).encode("utf-8", "replace")
        getattr(sys.stdout, "unfiltered", sys.stdout.buffer).write(text + b"\n")
        sys.stdout.flush()
    assert state is not None, "the state is the last value"
    context.note(f"{task}: {state.value.lower()}")
    return 0 if state is CommandState.DONE else BatchIncomplete.exit_status


def _log_row(work_batch: WorkBatch, log: AttemptLogFile, lines: int) -> LogRow:
    last = tuple(last_lines(work_batch.batch.files, log.path, lines))
    return LogRow(task=log.task, round=log.round, path=str(log.path), bytes=log.bytes, last=last)


def _log_lines(pieces: Iterator[bytes]) -> Iterator[str]:
    """Yield the lines of a log as text. Bytes that are not UTF-8 are replaced."""
    for lines in _prefix_lines(b"", pieces):
        yield from lines.decode("utf-8", "replace").removesuffix("\n").split("\n")


def _prefix_lines(prefix: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines in some pieces of output, each with a prefix. A line can continue in the next piece."""
    begun = b""
    for piece in pieces:
        *lines, begun = (begun + piece).split(b"\n")
        if lines:
            yield b"".join(prefix + line + b"\n" for line in lines)
    if begun:
        yield prefix + begun + b"\n"
