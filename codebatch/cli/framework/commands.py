"""Commands and options. The help of a command is made from their definitions. This module imports only click.

An option has a short text and, if needed, details. Help shows the details of the options that only one command has.
Common options, which many commands have, come last and without details. `codebatch help options` describes them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., object])

HelpRow = tuple[str, str]

OWN_OPTIONS_TITLE = "Options"
COMMON_OPTIONS_TITLE = "Common options"
HELP_OPTION_TEXT = "Print help"
DETAILS_NOTE = "Details of common options: codebatch help options"


class HelpfulOption(click.Option):
    """An option with a short text, `help`, and optional `details` in full sentences.

    Help shows `default_text` as the default if the value itself would be unclear. Help lists common options after the
    options of a single command, and global options, which every command has, last.
    """

    def __init__(
        self,
        declarations: Sequence[str],
        *,
        details: str = "",
        default_text: str = "",
        is_common: bool = False,
        is_global: bool = False,
        **attributes: Any,
    ) -> None:
        super().__init__(declarations, **attributes)
        self.details = details
        self.is_common = is_common or is_global
        self.is_global = is_global
        self.shown_default = default_text
        if not default_text and self.show_default:
            self.shown_default = str(attributes.get("default"))

    def text(self, *, is_detailed: bool = False) -> str:
        """Return the text that help shows for the option: the short text and, with `is_detailed`, the details.

        The text also says whether the option is required or repeatable, and its default.
        """
        marks = " (required)" * self.required + " (repeatable)" * self.multiple
        details = f". {self.details}" if self.details and is_detailed else ""
        default = f" [default: {self.shown_default}]" if self.shown_default else ""
        return f"{self.help}{marks}{details}{default}"

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        return None if record is None else (record[0], self.text(is_detailed=not self.is_common))


def option(*declarations: str, **attributes: Any) -> Callable[[F], F]:
    """Return a decorator that adds a HelpfulOption to a command."""
    return click.option(*declarations, cls=HelpfulOption, **attributes)


class HelpfulCommand(click.Command):
    """A command. Its help lists the common options after the options that only this command has."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_options(self, ctx, formatter)


command: Callable[..., Callable[[Callable[..., object]], click.Command]] = functools.partial(
    click.command, cls=HelpfulCommand
)
"""Like `click.command`, but creates a HelpfulCommand by default."""


def write_options(of_command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the help sections that list the options of a command."""
    sections: dict[str, list[HelpRow]] = {OWN_OPTIONS_TITLE: [], COMMON_OPTIONS_TITLE: []}
    options = [parameter for parameter in of_command.get_params(ctx) if isinstance(parameter, click.Option)]
    for parameter in sorted(options, key=_option_rank):
        if (row := help_row(ctx, parameter)) is not None:
            sections[OWN_OPTIONS_TITLE if _option_rank(parameter) == 0 else COMMON_OPTIONS_TITLE].append(row)
    for title, rows in sections.items():
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(DETAILS_NOTE)


def help_row(ctx: click.Context, option: click.Option) -> HelpRow | None:
    """Return the help row of an option, or None if the option is hidden."""
    row = option.get_help_record(ctx)
    return (row[0], HELP_OPTION_TEXT) if row is not None and not isinstance(option, HelpfulOption) else row


def _option_rank(option: click.Option) -> int:
    """Return the position of an option's group in help: own, common, global options, then `--help`."""
    return option.is_common + option.is_global if isinstance(option, HelpfulOption) else 3


def command_summary(of_command: click.Command) -> str:
    """Return the first paragraph of a command's help on one line, without a final full stop."""
    first = (of_command.help or "").replace("\b", "").strip().partition("\n\n")[0]
    return " ".join(first.split()).removesuffix(".")
