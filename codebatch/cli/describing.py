"""`api`, `explain` and `completion`: what the command line says of itself, without a store."""

from __future__ import annotations

import click

from codebatch.cli.answers import Completion
from codebatch.cli.ending import COMPLETE_VARIABLE
from codebatch.cli.options import Answering, answering, table

_SHELLS = ("bash", "zsh", "fish")


@click.command()
@answering
def api(answering: Answering) -> None:
    """Every command, option, kind of record, error and answer, for programs: with --json, and their schemas."""
    from codebatch.cli.interface import describe

    root = click.get_current_context().find_root().command
    assert isinstance(root, click.Group)
    described = describe(root)
    rows = ((each.name, each.answer or "-", each.description) for each in described.commands)
    answering.print(described, table(rows, ("command", "answer", "description")))


@click.command()
@click.argument("words", metavar="COMMAND...", nargs=-1, required=True)
@answering
def explain(answering: Answering, words: tuple[str, ...]) -> None:
    """What a reading command reads, and from where. Nothing is read to say so."""
    from codebatch.cli.explaining import explain as explain_command

    explained = explain_command(" ".join(words))
    lines = [f"{each.what}" + "".join(f"\n  {path}" for path in each.paths) for each in explained.reads]
    answering.print(explained, [each for line in lines for each in line.split("\n")])


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@answering
def completion(answering: Answering, shell: str) -> None:
    """What a shell reads to complete commands and options: for bash, eval "$(codebatch completion bash)"."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    made = kind(click.get_current_context().find_root().command, {}, "codebatch", COMPLETE_VARIABLE)
    script = made.source_template % made.source_vars()
    answering.print(Completion(shell=shell, script=script), script.splitlines())
