"""Groups of commands, and the options that may stand before or after a command's name. Imports click alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

F = TypeVar("F", bound=Callable[..., object])

STORE_VARIABLE = "CODEBATCH_STORE"


class Given(dict[str, object]):
    """What was told so far on a command line, under `store`, `as_json` and `quiet`."""

    def take(self, store: str | None, as_json: bool, quiet: bool) -> None:
        """The last word on the store holds; a flag that was given stays."""
        if store is not None:
            self["store"] = store
        self["as_json"] = as_json or bool(self.get("as_json"))
        self["quiet"] = quiet or bool(self.get("quiet"))


def given_of(ctx: click.Context) -> Given:
    """What was given so far on this command line."""
    root = ctx.find_root()
    if not isinstance(root.obj, Given):
        root.obj = Given()
    return root.obj


def answer_options(function: F) -> F:
    """Add `--store`, `--json` and `-q` to a command or group."""
    function = click.option("-q", "--quiet", is_flag=True, help="No progress and no notes on standard error.")(function)
    function = click.option("--json", "as_json", is_flag=True, help="Answer as JSON, errors included.")(function)
    return click.option(
        "--store", metavar="PATH", help=f"The store. Default: ${STORE_VARIABLE}, or the nearest .codebatch upwards."
    )(function)


class Group(click.Group):
    """A group that takes the options every command has, and suggests a command for one that there is not."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            import difflib  # only those who mistype pay for it

            close = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            ctx.fail(f"no such command {args[0]!r}" + (f"; did you mean {close[0]!r}?" if close else ""))
        return super().resolve_command(ctx, args)


def answering_group(function: Callable[[], None]) -> Callable[..., None]:
    """Give a group `--store`, `--json` and `-q`, for the command that follows."""

    @answer_options
    @click.pass_context
    def wrapped(ctx: click.Context, /, store: str | None, as_json: bool, quiet: bool) -> None:
        given_of(ctx).take(store, as_json, quiet)

    wrapped.__name__ = function.__name__
    wrapped.__doc__ = function.__doc__
    return wrapped
