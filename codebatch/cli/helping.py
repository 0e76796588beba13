"""`help` and `version`."""

from __future__ import annotations

import platform
from collections.abc import Iterable

import click
import msgspec

from codebatch import __version__
from codebatch.cli.groups import Group
from codebatch.cli.options import Answering, answering
from codebatch.cli.pages import TOPICS, page, page_lines, title
from codebatch.cli.tables import table
from codebatch.cli.widths import terminal_width
from codebatch.errors import InvalidInput


def _complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    root = ctx.find_root().command
    assert isinstance(root, click.Group)
    return [word for word in (*TOPICS, *root.list_commands(ctx)) if word.startswith(incomplete)]


class HelpTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A page of `help`."""

    topic: str
    title: str


class HelpShown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`help`: which topics there are, or of one or a command the text, a page in Markdown."""

    topics: tuple[HelpTopic, ...] = ()
    of: str = ""
    text: str = ""


class VersionShown(msgspec.Struct, frozen=True, kw_only=True):
    """`version`."""

    version: str
    python: str


@click.command("help")
@click.argument("words", metavar="[TOPIC | COMMAND...]", nargs=-1, shell_complete=_complete)
@answering
def help_(answering: Answering, words: tuple[str, ...]) -> None:
    """A page on a topic, or how a command is called; without one, which topics there are.

    In a pipe a page is the Markdown that it is written in.
    """
    if not words:
        topics = tuple(HelpTopic(topic=each, title=title(each)) for each in TOPICS)
        rows = ((each.topic, each.title) for each in topics)
        answering.print(HelpShown(topics=topics), table(rows, ("topic", "title")))
        answering.note("read a page with: codebatch help TOPIC; list all commands with: codebatch --help")
        return
    if len(words) == 1 and words[0] in TOPICS:
        text = page(words[0])
        columns = terminal_width()
        lines: Iterable[str] = text.splitlines() if columns is None else page_lines(text, columns)
    else:
        text = _help_of_command(words)
        lines = text.splitlines()
    answering.print(HelpShown(of=" ".join(words), text=text), lines)


@click.command()
@answering
def version(answering: Answering) -> None:
    """Which version this is, and which Python it runs on."""
    shown = VersionShown(version=__version__, python=platform.python_version())
    answering.print(shown, [f"codebatch {shown.version} (Python {shown.python})"])


def _help_of_command(words: tuple[str, ...]) -> str:
    """What `--help` says of a command. Raises InvalidInput where there is none of these words."""
    context = click.get_current_context().find_root()
    for word in words:
        group = context.command
        below = group.get_command(context, word) if isinstance(group, click.Group) else None
        if below is None:
            of = "topic or command" if len(words) == 1 else "command"
            meant = group.meant(context, word, TOPICS if len(words) == 1 else ()) if isinstance(group, Group) else None
            hint = f"did you mean {meant!r}?" if meant else f"see: {context.command_path} --help"
            raise InvalidInput(f"no such {of}: {' '.join(words)!r}", hint=hint)
        context = click.Context(below, context, word, **group.context_settings)
    return context.get_help()
