"""The pages `commands` and `options` of `codebatch help`. Their Markdown is made from the commands and options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import click

from codebatch.cli.framework.commands import HelpfulOption, Row, command_summary
from codebatch.cli.framework.common_options import common_options

_COMMANDS = "All commands"
_OPTIONS = "Options of many commands"


def commands_page(root: click.Group) -> str:
    """Return the page that lists all commands by section."""
    from codebatch.cli import SECTIONS  # Imported late, because `codebatch.cli` imports this module.

    context = click.Context(root)
    lines = [f"# {_COMMANDS}", "", "`codebatch help COMMAND` describes a command.", ""]
    for title, section in SECTIONS.items():
        rows: list[Row] = []
        for name, (_, text) in section.items():
            rows.append((name, text))
            if not text.startswith("Same as "):
                rows += _below(name, root.get_command(context, name))
        lines += [f"## {title}", "", *_table(("command", "description"), rows), ""]
    return _text(lines)


def options_page(root: click.Group) -> str:
    """Return the page of the options that all or many commands have."""
    context = click.Context(root)
    of_all = [
        parameter for parameter in root.params if isinstance(parameter, HelpfulOption) and parameter.name != "version"
    ]
    lines = [f"# {_OPTIONS}", ""]
    for title, options in (("Options of every command", of_all), ("Common options", common_options())):
        rows = [
            (row[0], parameter.text(is_detailed=True))
            for parameter in options
            if (row := parameter.get_help_record(context)) is not None
        ]
        lines += [f"## {title}", "", *_table(("option", "description"), rows), ""]
    lines.append("The options of every command can stand before or after the name of the command.")
    return _text(lines)


GENERATED: dict[str, tuple[str, Callable[[click.Group], str]]] = {
    "commands": (_COMMANDS, commands_page),
    "options": (_OPTIONS, options_page),
}
"""The title of each generated page, and the function that makes it, by topic."""


def _below(name: str, command: click.Command | None) -> Iterator[Row]:
    """Yield the commands of a group, each with its summary. If `command` is not a group, yield nothing."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            below = command.get_command(context, word)
            assert below is not None
            yield f"{name} {word}", command_summary(below)


def _table(header: Row, rows: Sequence[Row]) -> Iterator[str]:
    """Yield a Markdown table with aligned columns."""
    width = max(len(first) for first, _ in (header, *rows))
    for first, second in (header, ("-" * width, "-" * len(header[1])), *rows):
        yield f"| {first.ljust(width)} | {second} |"


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines).rstrip("\n") + "\n"
