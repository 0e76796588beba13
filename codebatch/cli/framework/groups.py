"""Groups of commands, and the options that may stand before or after a command's name. Imports little but click."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

import click

from codebatch.cli.framework.commands import HelpfulCommand, option, summary_of, write_options
from codebatch.model.text.suggestions import closest

F = TypeVar("F", bound=Callable[..., object])

STORE_VARIABLE = "CODEBATCH_STORE"
FLAGS = {
    "as_json": (("--json",), "Print answers and errors as JSON"),
    "quiet": (("-q", "--quiet"), "Suppress progress and notes"),
    "verbose": (("-v", "--verbose"), "Report which store was used and how much of it was read"),
    "no_color": (("--no-color",), "Same as --color never"),
}
"""The flags that every command has."""


def schema_of(name: str) -> str:
    """What the member `schema` of an answer says; its schema is schemas/NAME-answer.json."""
    return f"codebatch.{name}/1"


class Given(dict[str, object]):
    """What was told so far on a command line, under `store`, `color` and the names of FLAGS."""

    def take(self, store: str | None, color: str | None, flags: Mapping[str, bool]) -> None:
        """The last word on the store and on colours holds; a flag that was given stays."""
        for name, value in (("store", store), ("color", color)):
            if value is not None:
                self[name] = value
        for name, is_given in flags.items():
            self[name] = is_given or bool(self.get(name))


def given_of(ctx: click.Context) -> Given:
    """What was given so far on this command line."""
    root = ctx.find_root()
    if not isinstance(root.obj, Given):
        root.obj = Given()
    return root.obj


def words_of(ctx: click.Context) -> str:
    """The words of the command that runs, without the program's own."""
    return ctx.command_path.removeprefix(ctx.find_root().command_path).strip()


def answer_options(function: F) -> F:
    """Add `--store`, `--color` and the options of FLAGS to a command or group."""
    for name, (words, text) in reversed(FLAGS.items()):
        function = option(*words, name, is_flag=True, is_global=True, help=text)(function)
    function = option(
        "--color",
        metavar="WHEN",
        type=click.Choice(("auto", "always", "never")),
        is_global=True,
        default_text="auto",
        help="Colour output: auto, always or never",
        details="With auto, output is coloured on a terminal. NO_COLOR and FORCE_COLOR are respected.",
    )(function)
    return option(
        "--store",
        metavar="PATH",
        is_global=True,
        default_text=".codebatch in the project",
        help="Store to use",
        details=f"The environment variable {STORE_VARIABLE} overrides the default.",
    )(function)


class Group(click.Group):
    """A group that takes the options every command has, and suggests a command for one that there is not."""

    command_class = HelpfulCommand
    other_words: Mapping[str, str] = {}
    """What other programs call what we have under another name, with that name."""

    def meant(self, ctx: click.Context, word: str, others: Collection[str] = ()) -> str | None:
        """Return what is meant by a word that is no command: a command, or one of some other words; None if unknown."""
        word = self.other_words.get(word, word)
        if word in self.other_words.values():
            return word
        found = closest(word, [*others, *self.list_commands(ctx), *self.other_words])
        return self.other_words.get(found or "", found)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        write_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary_of(each)) for name, each in commands.items() if each is not None])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            meant = self.meant(ctx, args[0])
            ctx.fail(f"no such command {args[0]!r}" + (f"; did you mean {meant!r}?" if meant else ""))
        return super().resolve_command(ctx, args)


def answering_group(function: Callable[[], None]) -> Callable[..., None]:
    """Give a group the options that every command has, for the one that follows."""

    @answer_options
    @click.pass_context
    def wrapped(ctx: click.Context, /, store: str | None, color: str | None, **flags: bool) -> None:
        given_of(ctx).take(store, color, flags)

    wrapped.__name__ = function.__name__
    wrapped.__doc__ = function.__doc__
    return wrapped
