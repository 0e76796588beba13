"""Command groups, and the options that may precede or follow the name of a command.

To start fast, this module imports little besides click.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

import click

from codebatch.cli.framework.commands import HelpfulCommand, command_summary, option, write_options
from codebatch.model.text.suggestions import closest_word

F = TypeVar("F", bound=Callable[..., object])

STORE_VARIABLE = "CODEBATCH_STORE"
GLOBAL_FLAGS = {
    "as_json": (("--json",), "Print answers and errors as JSON"),
    "quiet": (("-q", "--quiet"), "Suppress progress and notes"),
    "verbose": (("-v", "--verbose"), "Report which store was used and how much of it was read"),
    "no_color": (("--no-color",), "Same as --color never"),
}
"""Flags that every command has."""


def answer_schema_name(name: str) -> str:
    """Return the name that the member `schema` of an answer has. The schema is in schemas/NAME-answer.json."""
    return f"codebatch.{name}/1"


class GlobalOptions(dict[str, object]):
    """The values of the global options that were parsed so far.

    They are `store`, `color` and the options of FLAGS.
    """

    def add_given(self, store: str | None, color: str | None, flags: Mapping[str, bool]) -> None:
        """Merge the values of options that were parsed later. They replace `store` and `color`, if given.

        A flag that was given once stays set.
        """
        for name, value in (("store", store), ("color", color)):
            if value is not None:
                self[name] = value
        for name, is_given in flags.items():
            self[name] = is_given or bool(self.get(name))


def get_global_options(ctx: click.Context) -> GlobalOptions:
    """Return the values of the global options on the command line, as far as it was parsed."""
    root = ctx.find_root()
    if not isinstance(root.obj, GlobalOptions):
        root.obj = GlobalOptions()
    return root.obj


def command_words(ctx: click.Context) -> str:
    """Return the words of the current command, without the name of the program."""
    return ctx.command_path.removeprefix(ctx.find_root().command_path).strip()


def add_global_options(function: F) -> F:
    """Add `--store`, `--color` and the options of FLAGS to a command or group."""
    for name, (words, text) in reversed(GLOBAL_FLAGS.items()):
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


class CommandGroup(click.Group):
    """A group of commands. It accepts the global options, and it suggests a command for an unknown name."""

    command_class = HelpfulCommand
    other_words: Mapping[str, str] = {}
    """Names of commands in other programs, each with the command of this group that does the same."""

    def find_similar_command(self, ctx: click.Context, word: str, others: Collection[str] = ()) -> str | None:
        """Return a command with a name similar to an unknown word, or with the same purpose.

        `others` are further names that can be returned. Return None if there is none.
        """
        word = self.other_words.get(word, word)
        if word in self.other_words.values():
            return word
        similar = closest_word(word, [*others, *self.list_commands(ctx), *self.other_words])
        return self.other_words.get(similar or "", similar)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        write_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, command_summary(command)) for name, command in commands.items() if command is not None]
            )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            suggestion = self.find_similar_command(ctx, args[0])
            ctx.fail(f"no such command {args[0]!r}" + (f"; did you mean {suggestion!r}?" if suggestion else ""))
        return super().resolve_command(ctx, args)


def group_with_common_options(function: Callable[[], None]) -> Callable[..., None]:
    """Add the global options to a group. They also apply to the command of the group that is called."""

    @add_global_options
    @click.pass_context
    def wrapped(ctx: click.Context, /, store: str | None, color: str | None, **flags: bool) -> None:
        get_global_options(ctx).add_given(store, color, flags)

    wrapped.__name__ = function.__name__
    wrapped.__doc__ = function.__doc__
    return wrapped
