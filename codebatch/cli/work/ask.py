"""The command `ask`: a running task asks a person a question.

With `--human`, answers of rules or programs are not accepted.
"""

from __future__ import annotations

import click
import msgspec

from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.context import CommandContext, with_common_options
from codebatch.work.control.ask import EXIT_NOT_ANSWERED
from codebatch.work.control.ask import ask_question as ask_people


class AskAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch ask`. `answer` is null if the question is not answered yet."""

    answer: str | None


@command()
@click.argument("text")
@option("--choice", "choices", multiple=True, metavar="TEXT", help="Allowed answer")
@option("--wait", "waits", is_flag=True, help="Keep running and wait for the answer")
@option(
    "--human", is_flag=True, help="Accept answers only from people, not from the rules or the command in [answering]"
)
@with_common_options
def ask(context: CommandContext, text: str, choices: tuple[str, ...], waits: bool, human: bool) -> int:
    """Ask a question from within a task.

    For example, in a shell script:

    \b
    db=$(codebatch ask "Which database?") || exit 75

    If the same TEXT was answered before, prints the answer. Otherwise, the exit status is 75, and the task should end:
    it is run again when the question is answered. With --wait, the command waits for the answer instead.
    """
    answer = ask_people(text, choices=choices, human=human, wait=waits)
    context.print(AskAnswer(answer=answer), [] if answer is None else [answer])
    return EXIT_NOT_ANSWERED if answer is None else 0
