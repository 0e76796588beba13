"""The pages `commands` and `options` of `codebatch help`. Their Markdown is made from the commands and options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import click

from codebatch.cli.framework.commands import HelpfulOption, HelpRow, command_summary
from codebatch.cli.framework.common_options import common_options

_COMMANDS_TITLE = "All commands"
_OPTIONS_TITLE = "Options of many commands"


def commands_page(root: click.Group) -> str:
    """Return the page that lists all commands by section."""
    from codebatch.cli import COMMANDS_BY_SECTION  # Imported late, because `codebatch.cli` imports this module.

    context = click.Context(root)
    lines = [f"# {_COMMANDS_TITLE}", "", "`codebatch help COMMAND` describes a command.", ""]
    for title, section in COMMANDS_BY_SECTION.items():
        rows: list[HelpRow] = []
        for name, (_, text) in section.items():
            rows.append((name, text))
            if not text.startswith("Same as "):
                rows += _iter_command_rows(name, root.get_command(context, name))
        lines += [f"## {title}", "", *_markdown_table(("command", "description"), rows), ""]
    return _join_lines(lines)


def options_page(root: click.Group) -> str:
    """Return the page of the options that all or many commands have."""
    context = click.Context(root)
    of_all = [
        parameter for parameter in root.params if isinstance(parameter, HelpfulOption) and parameter.name != "version"
    ]
    lines = [f"# {_OPTIONS_TITLE}", ""]
    for title, options in (("Options of every command", of_all), ("Common options", common_options())):
        rows = [
            (row[0], parameter.text(is_detailed=True))
            for parameter in options
            if (row := parameter.get_help_record(context)) is not None
        ]
        lines += [f"## {title}", "", *_markdown_table(("option", "description"), rows), ""]
    lines.append("The options of every command can stand before or after the name of the command.")
    return _join_lines(lines)


GENERATED_PAGES: dict[str, tuple[str, Callable[[click.Group], str]]] = {
    "commands": (_COMMANDS_TITLE, commands_page),
    "options": (_OPTIONS_TITLE, options_page),
}
"""The title of each generated page, and the function that makes it, by topic."""


def _iter_command_rows(name: str, command: click.Command | None) -> Iterator[HelpRow]:
    """Yield the commands of a group, each with its summary. If `command` is not a group, yield nothing."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            below = command.get_command(context, word)
            assert below is not None
            yield f"{name} {word}", command_summary(below)


def _markdown_table(header: HelpRow, rows: Sequence[HelpRow]) -> Iterator[str]:
    """Yield a Markdown table with aligned columns."""
    width = max(len(first) for first, _ in (header, *rows))
    for first, second in (header, ("-" * width, "-" * len(header[1])), *rows):
        yield f"| {first.ljust(width)} | {second} |"


def _join_lines(lines: Iterable[str]) -> str:
    return "\n".join(lines).rstrip("\n") + "\n"
