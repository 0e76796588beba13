"""`ask`: what a task asks people while it runs, or as it ends."""

from __future__ import annotations

import click
import msgspec

from codebatch.cli.options import Answering, answering
from codebatch.work.ask import NOT_ANSWERED
from codebatch.work.ask import ask as ask_people


class AskAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What was answered, null where nothing was yet."""

    answer: str | None


@click.command()
@click.argument("text")
@click.option("--choice", "choices", multiple=True, metavar="C", help="What may be answered (may be repeated).")
@click.option("--wait", "waits", is_flag=True, help="Go on to run, and wait for the answer.")
@click.option("--human", is_flag=True, help="For people alone: no rule and no program answers.")
@answering
def ask(answering: Answering, text: str, choices: tuple[str, ...], waits: bool, human: bool) -> int:
    """Ask people TEXT, from within a task: `db=$(codebatch ask "Which database?") || exit 75`.

    Prints the answer, where there was one to the same text before. Else exit status 75: the task is to end, and is
    begun again once it is answered; or, with --wait, the answer is waited for.
    """
    answer = ask_people(text, choices=choices, human=human, wait=waits)
    answering.print(AskAnswer(answer=answer), [] if answer is None else [answer])
    return NOT_ANSWERED if answer is None else 0
