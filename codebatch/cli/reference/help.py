"""The commands `help` and `version`."""

from __future__ import annotations

import platform
from collections.abc import Iterable

import click
import msgspec

from codebatch import __version__
from codebatch.cli.framework.commands import command
from codebatch.cli.framework.context import CommandContext, with_common_options
from codebatch.cli.framework.groups import CommandGroup
from codebatch.cli.output.markdown import HELP_TOPICS, help_title, page_lines, read_help_page
from codebatch.cli.output.tables import table_lines
from codebatch.cli.output.widths import terminal_width
from codebatch.cli.reference.pages import GENERATED_PAGES
from codebatch.errors import InvalidInput

ALL_TOPICS = (*HELP_TOPICS, *GENERATED_PAGES)


def _complete_topic(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    root = ctx.find_root().command
    assert isinstance(root, click.Group)
    return [word for word in (*ALL_TOPICS, *root.list_commands(ctx)) if word.startswith(incomplete)]


class HelpTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A help topic."""

    topic: str
    title: str


class HelpAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer of `codebatch help`. Without an argument, `topics` lists all topics; otherwise `text` is a page in
    Markdown.
    """

    topics: tuple[HelpTopic, ...] = ()
    topic: str = ""
    text: str = ""


class VersionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch version`."""

    version: str
    python: str


@command("help")
@click.argument("words", metavar="[TOPIC|COMMAND...]", nargs=-1, shell_complete=_complete_topic)
@with_common_options
def help_(context: CommandContext, words: tuple[str, ...]) -> None:
    """Show help on a topic or a command.

    Without an argument, lists the topics. In a pipe, a topic is printed as Markdown.
    """
    if not words:
        titles = {
            **{each: help_title(each) for each in HELP_TOPICS},
            **{each: name for each, (name, _) in GENERATED_PAGES.items()},
        }
        topics = tuple(HelpTopic(topic=each, title=name) for each, name in titles.items())
        rows = ((each.topic, each.title) for each in topics)
        context.print(HelpAnswer(topics=topics), table_lines(rows, ("topic", "title")))
        context.note("read a topic with: codebatch help TOPIC")
        return
    if len(words) == 1 and words[0] in ALL_TOPICS:
        text = _topic_page(words[0])
        columns = terminal_width()
        lines: Iterable[str] = text.splitlines() if columns is None else page_lines(text, columns)
    else:
        text = _command_help(words)
        lines = text.splitlines()
    context.print(HelpAnswer(topic=" ".join(words), text=text), lines)


@command()
@with_common_options
def version(context: CommandContext) -> None:
    """Print the versions of codebatch and Python."""
    answer = VersionAnswer(version=__version__, python=platform.python_version())
    context.print(answer, [f"codebatch {answer.version} (Python {answer.python})"])


def _topic_page(topic: str) -> str:
    """Return a page of help as Markdown."""
    if topic not in GENERATED_PAGES:
        return read_help_page(topic)
    root = click.get_current_context().find_root().command
    assert isinstance(root, click.Group)
    return GENERATED_PAGES[topic][1](root)


def _command_help(words: tuple[str, ...]) -> str:
    """Return the help of a command. Raises InvalidInput if no command has this name."""
    context = click.get_current_context().find_root()
    for word in words:
        group = context.command
        below = group.get_command(context, word) if isinstance(group, click.Group) else None
        if below is None:
            kind = "topic or command" if len(words) == 1 else "command"
            topics = ALL_TOPICS if len(words) == 1 else ()
            similar = group.find_similar_command(context, word, topics) if isinstance(group, CommandGroup) else None
            hint = f"did you mean {similar!r}?" if similar else f"see: {context.command_path} --help"
            raise InvalidInput(f"no such {kind}: {' '.join(words)!r}", hint=hint)
        context = click.Context(below, context, word, **group.context_settings)
    return context.get_help()
