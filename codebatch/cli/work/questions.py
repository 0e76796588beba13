"""The commands `work questions` and `work answer`: questions of tasks, and answers."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from codebatch.cli.answers.trust import explaining_untrusted_commands
from codebatch.cli.answers.work_progress import WorkProgressListener
from codebatch.cli.answers.work_result import answer_work_run
from codebatch.cli.answers.work_status import answer_work_status, status_summary
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.common_options import common_option
from codebatch.cli.framework.completion import complete_command
from codebatch.cli.framework.context import CommandContext, with_common_options, work_batch_option
from codebatch.cli.framework.read_report import explain_option
from codebatch.cli.framework.work_options import AttemptOutput, output_option, trust_option
from codebatch.errors import InvalidInput
from codebatch.model.work.question import QUESTION_TEXT_BYTES_MAX
from codebatch.work.control import run
from codebatch.work.control.batches import load_work_batch
from codebatch.work.control.list_changes import warn_about_changes
from codebatch.work.control.questions import OpenQuestion, answer_question, open_questions

_DIGEST_DIGITS_SHOWN = 8


@command()
@work_batch_option
@explain_option
@with_common_options
def questions(context: CommandContext, batch_reference: str | None) -> None:
    """List the questions of tasks that wait for an answer.

    Each question is listed with the command to answer it.
    """
    work_batch = load_work_batch(*context.batch(batch_reference, "work"))
    waiting = open_questions(work_batch)
    context.batches.append(work_batch.batch)
    lines = [line for open_question in waiting for line in _question_lines(open_question, work_batch.batch.id)]
    context.print(waiting, lines)
    if not waiting:
        context.note("no task is waiting for an answer")


def _question_lines(question: OpenQuestion, batch: str) -> Iterator[str]:
    how = ", still running" if question.is_live else ""
    first, *more = question.text.splitlines() or [""]
    yield f"{question.task}  ({question.digest[:_DIGEST_DIGITS_SHOWN]}, attempt {question.round}{how})  {first}"
    yield from (f"    {line}" for line in more)
    if question.choices:
        yield f"    one of: {', '.join(question.choices)}"
    yield f"    codebatch work answer {question.task} ANSWER --batch {batch}"


@command()
@click.argument("task", shell_complete=complete_command)
@click.argument("text", metavar="[ANSWER|-]", required=False)
@option(
    "--question",
    metavar="DIGEST",
    help="Answer only if the task still asks this question",
    details="`codebatch work questions` shows the digest of each question.",
)
@option("--editor", "edits", is_flag=True, help="Write the answer in $EDITOR")
@option("--resume", "resumes", is_flag=True, help="Resume the batch if it is not running")
@common_option("batch", default_text="the only running task list, else the latest")
@output_option
@trust_option
@with_common_options
def answer(
    context: CommandContext,
    task: str,
    text: str | None,
    question: str | None,
    edits: bool,
    resumes: bool,
    batch_reference: str | None,
    output: AttemptOutput,
    is_trusted: bool,
) -> int:
    """Answer the question of a task.

    `-` reads the answer from standard input.

    If a task was interrupted, printed nothing for too long or has no try left, codebatch may ask how to continue.
    Answer `again` to run the task again, `failed` to let it fail, or `done` to treat it as done.

    If the batch is running, the task continues at once. Otherwise, it continues with `codebatch resume`. Only the first
    answer to a question is accepted; a second answer is an error.
    """
    store, batch = context.live_batch(batch_reference, else_latest=True)
    answer_text = _read_answer_text(text, edits=edits)
    work_batch, task = answer_question(store, batch, task, answer_text, question=question)
    listener = WorkProgressListener(context, output)
    if work_batch.standing.coordinator is not None:
        warn_about_changes(work_batch, listener)
    elif resumes:
        result = explaining_untrusted_commands(
            context, lambda: run.continue_batch(store, batch, is_trusted=is_trusted, listener=listener)
        )
        return answer_work_run(context, result)
    first = answer_text.strip().splitlines()[0]
    answer_work_status(context, work_batch, [f"{task}: {first}; {status_summary(work_batch)}"])
    if work_batch.standing.coordinator is None:
        context.note(f"resume it with: codebatch resume --batch {work_batch.batch.id}")
    return 0


def _read_answer_text(text: str | None, *, edits: bool) -> str:
    """Return the answer from the argument, an editor or standard input, without line breaks at its end."""
    if edits == (text is not None):
        raise InvalidInput("no answer given" if text is None else "ANSWER cannot be used with --editor")
    if edits:
        written = click.edit("")
        if written is None:
            raise InvalidInput("the editor was closed without an answer")
        return written.rstrip("\n")
    if text == "-":
        return sys.stdin.buffer.read(QUESTION_TEXT_BYTES_MAX + 1).decode("utf-8", "replace").rstrip("\n")
    assert text is not None
    return text
