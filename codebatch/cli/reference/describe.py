"""The commands `api`, `explain` and `completion`: descriptions of the command line that need no store."""

from __future__ import annotations

import click

from codebatch.cli.answers.schemas import CompletionAnswer
from codebatch.cli.framework.commands import command
from codebatch.cli.framework.context import CommandContext, table_lines, with_common_options
from codebatch.cli.framework.exit import COMPLETE_VARIABLE

_SHELLS = ("bash", "zsh", "fish")


@command()
@with_common_options
def api(context: CommandContext) -> None:
    """Describe the command line and its JSON answers, for programs.

    With --json, prints every command, option, record kind and error, and the JSON schemas of all answers.
    """
    from codebatch.cli.reference.interface import describe_interface

    root = click.get_current_context().find_root().command
    assert isinstance(root, click.Group)
    described = describe_interface(root)
    rows = (
        (described_command.name, described_command.answer or "-", described_command.description)
        for described_command in described.commands
    )
    context.print(described, table_lines(rows, ("command", "answer", "description")))


@command()
@click.argument("words", metavar="COMMAND...", nargs=-1, required=True)
@with_common_options
def explain(context: CommandContext, words: tuple[str, ...]) -> None:
    """Show which files of the store a command reads.

    COMMAND must be a command that only reads the store. `codebatch explain` itself does not read the store.
    """
    from codebatch.cli.framework.explain_answers import explain_command as explain_command

    explained = explain_command(" ".join(words))
    lines = [f"{source.description}" + "".join(f"\n  {path}" for path in source.paths) for source in explained.reads]
    context.print(explained, [source for line in lines for source in line.split("\n")])


@command()
@click.argument("shell", type=click.Choice(_SHELLS))
@with_common_options
def completion(context: CommandContext, shell: str) -> None:
    """Print the completion script of a shell.

    For bash, add this line to ~/.bashrc:

    \b
    eval "$(codebatch completion bash)"
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    completion_class = kind(click.get_current_context().find_root().command, {}, "codebatch", COMPLETE_VARIABLE)
    script = completion_class.source_template % completion_class.source_vars()
    context.print(CompletionAnswer(shell=shell, script=script), script.splitlines())
